// AsyncAPI's parser on a document: what it finds, and the channels and operations that it reads, as JSON.

import { Parser, fromFile } from "@asyncapi/parser";

const { document, diagnostics } = await fromFile(new Parser(), process.argv[2]).parse();
const found = diagnostics.map(({ code, message, path, severity }) => ({ code, message, path, severity }));
const channels = document?.allChannels().all().map((one) => one.address()) ?? [];
const operations = document?.allOperations().all().map((one) => [one.id(), one.action()]) ?? [];
const messages = document?.allMessages().all().map((one) => [one.id(), one.hasPayload()]) ?? [];
process.stdout.write(JSON.stringify({ found, channels, operations, messages }));
