// TanStack AI: its canonical form and hashes, its server's judgement of a batch, and its client.

import { validateInterruptResumeBatch, readInterruptBinding } from "@tanstack/ai/adapter-internals";
import { canonicalInterruptJson, digestInterruptJson } from "@tanstack/ai/client";
import { canonicalizeInterruptResolutions } from "@tanstack/ai";
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
import { eventStream } from "./sse.mjs";

// The canonical form and the hash of each JSON text; null where there is none.
export function hashes({ texts }) {
  return texts.map((text) => {
    try {
      const canonical = canonicalInterruptJson(JSON.parse(text));
      return { canonical, hash: digestInterruptJson(canonical) };
    } catch (error) {
      return { refused: error.message };
    }
  });
}

// The canonical form of each batch, and its fingerprint.
export function fingerprints({ batches }) {
  return batches.map((text) => {
    const { canonicalResolutions, fingerprint } = canonicalizeInterruptResolutions(JSON.parse(text));
    return { canonical: canonicalResolutions, fingerprint };
  });
}

// What TanStack's server says of a batch for these interrupts: the codes of its errors, none if it takes it.
export async function validate({ thread, interrupts, resume, now }) {
  const pending = interrupts.map((payload) => {
    const { expiresAt } = payload;
    const binding = { ...readInterruptBinding(payload), ...(expiresAt === undefined ? {} : { expiresAt }) };
    return { interruptId: payload.id, payload, binding };
  });
  const { interruptedRunId, generation } = pending[0].binding;
  const asked = { threadId: thread, interruptedRunId, generation, pending, resume, tools: [], now };
  const { errors } = await validateInterruptResumeBatch(asked).catch((thrown) => ({
    errors: [{ code: thrown.name }],
  }));
  return errors.map(({ scope, code, interruptId }) => ({ scope, code, interruptId }));
}

// A chat whose user says something and then answers: the items that the client shows before and after.
export async function chat({ thread, answers }, ask) {
  const fetchClient = async (_url, request) => eventStream(await ask({ posted: request.body }));
  const connection = fetchServerSentEvents("http://gate.invalid/", { fetchClient });
  const client = new ChatClient({ threadId: thread, connection, tools: [] });
  await client.sendMessage("go");
  const rounds = [shown(client)];
  for (const round of answers) {
    const items = client.getInterrupts().filter((item) => item.id in round || item.interruptId in round);
    for (const item of items) {
      const answer = round[item.id ?? item.interruptId];
      await (answer === null ? item.cancel() : item.resolveInterrupt(answer));
    }
    await settled(client);
    rounds.push(shown(client));
  }
  return rounds;
}

async function settled(client) {
  while (client.getInterruptState().resuming || client.getIsLoading()) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function shown(client) {
  const { interrupts, interruptErrors } = client.getInterruptState();
  return { interrupts, interruptErrors };
}
