// @ag-ui/client: what it makes of the gate's events, and what it lets its user send.

import { AbstractAgent, HttpAgent } from "@ag-ui/client";
import { ReplaySubject } from "rxjs";
import { eventStream } from "./sse.mjs";

const ENDS = ["RUN_FINISHED", "RUN_ERROR"];

// A thread that is looked at: every run shown in it is one stream, as an edge in front of `events` serves it.
class Watched extends AbstractAgent {
  streams = new Map();

  run() {
    throw new Error("it only looks");
  }

  connect(input) {
    return this.streams.get(input.runId);
  }
}

class Watcher {
  threads = new Map();
  open = new Map();
  faults = [];
  count = 0;

  thread(id) {
    if (!this.threads.has(id)) {
      this.threads.set(id, new Watched({ threadId: id }));
    }
    return this.threads.get(id);
  }

  begin(thread, run) {
    const stream = new ReplaySubject();
    const runId = `${run}#${this.count++}`;
    thread.streams.set(runId, stream);
    // The guard of connectAgent wants every open interrupt addressed; nothing of this is sent anywhere.
    const resume = thread.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "cancelled" }));
    const read = thread.connectAgent({ runId, resume }).catch((error) => {
      this.faults.push(`${thread.threadId} ${run}: ${error.message}`);
    });
    return { stream, read };
  }

  async feed({ key, run, event }) {
    const thread = this.thread(key);
    const name = JSON.stringify([key, run]);
    if (!this.open.has(name)) {
      this.open.set(name, this.begin(thread, run));
    }
    const { stream, read } = this.open.get(name);
    stream.next(event);
    if (ENDS.includes(event.type)) {
      this.open.delete(name);
      stream.complete();
      await read;
    }
  }

  pending() {
    const found = {};
    for (const [id, { pendingInterrupts }] of this.threads) {
      found[id] = pendingInterrupts.map((interrupt) => interrupt.id);
    }
    return found;
  }

  async close() {
    for (const { stream, read } of this.open.values()) {
      stream.complete();
      await read;
    }
  }
}

// What the client holds open in each thread after each step of a history, and what it could not read.
export async function watch({ steps }) {
  const watcher = new Watcher();
  const pending = [];
  for (const shown of steps) {
    for (const one of shown) {
      await watcher.feed(one);
    }
    pending.push(watcher.pending());
  }
  await watcher.close();
  return { pending, faults: watcher.faults };
}

// A conversation over HTTP: what is sent of each run that its user asks for, or why the client would not.
// Its clock is `ahead` by so many milliseconds when the last run is asked for.
export async function converse({ thread, runs, ahead }, ask) {
  const fetch = async (_url, request) => {
    sent = request.body;
    return eventStream(await ask({ posted: request.body }));
  };
  let sent;
  const agent = new HttpAgent({ url: "http://gate.invalid/", threadId: thread, fetch });
  const told = [];
  for (const [number, parameters] of runs.entries()) {
    globalThis.Date = number === runs.length - 1 ? clock(ahead) : Now;
    sent = null;
    let threw = null;
    if (parameters.messages) {
      agent.setMessages(parameters.messages);
    }
    try {
      await agent.runAgent(parameters);
    } catch (error) {
      threw = error.message;
    }
    told.push({ sent, threw, pending: agent.pendingInterrupts.map(({ id }) => id) });
  }
  globalThis.Date = Now;
  return told;
}

const Now = Date;

function clock(ahead) {
  return class extends Now {
    constructor(...given) {
      super(...(given.length > 0 ? given : [Now.now() + ahead]));
    }

    static now() {
      return Now.now() + ahead;
    }
  };
}
