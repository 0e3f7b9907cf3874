// Push, pop, lease, acknowledge and follow a queue from JavaScript: node examples/client.mjs QUEUE
const [queue] = process.argv.slice(2);
const api = `${process.env.PQADMIN_SERVER}/api/v1`;
const authorization = { Authorization: `Bearer ${process.env.PQADMIN_TOKEN}` };

/** Sends one request; a refusal is an Error with the code of the problem. */
async function call(method, path, { body, key } = {}) {
  const answer = await fetch(api + path, {
    method,
    headers: {
      ...authorization,
      ...(body && { "Content-Type": "application/json" }),
      ...(key && { "Idempotency-Key": key }),
    },
    body: body && JSON.stringify(body),
  });
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(`${found.code}: ${found.detail}`), { code: found.code });
  return found;
}

/** Yields the events of the stream, as objects of event, id and data. */
async function* events(glob) {
  const answer = await fetch(`${api}/events?queues=${encodeURIComponent(glob)}`, { headers: authorization });
  if (!answer.ok) throw new Error(await answer.text());
  let text = "";
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + part).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)));
      if (fields.data) yield { ...fields, data: JSON.parse(fields.data) };
    }
  }
}

const path = `/queues/${encodeURIComponent(queue)}`;
const key = `image-7-${Date.now()}`;

// The same again under one key: one item.
const push = { body: { value: "resize image 7", priority: 5 }, key };
const [first] = (await call("POST", `${path}/items`, push)).items;
const [again] = (await call("POST", `${path}/items`, push)).items;
console.log("pushed", first.id, "again", again.id);

// The item is gone with its answer, which the key gives again should it be lost.
const [popped] = (await call("POST", `${path}/pop?end=min&wait=10`, { key: `pop-${key}` })).items;
console.log("popped", popped.id, popped.value);

// Without the acknowledgement the item is ready again after 30 seconds.
await call("POST", `${path}/items`, { body: { value: "resize image 8", priority: 5 } });
const [held] = (await call("POST", `${path}/lease?seconds=30&wait=10`)).items;
const [result] = (await call("POST", `${path}/ack`, { body: { leases: [held.lease] } })).results;
console.log("acknowledged", held.value, result.done);

// The first state of the queue; changes would follow.
for await (const { event, data } of events(queue)) {
  if (event !== "queue") continue;
  console.log("event", event, JSON.stringify(data));
  break;
}
