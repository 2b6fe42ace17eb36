// An answer of the gate's edge: its events as a stream of server-sent events that ends with the run.

export function eventStream(events) {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return new Response(body, { status: 200, headers: { "content-type": "text/event-stream" } });
}
