const encode = (messages) => {
  const chunks = messages.map((m) => new TextEncoder().encode(JSON.stringify(m)));
  const out = new Uint8Array(chunks.reduce((n, c) => n + 4 + c.length, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const c of chunks) {
    view.setUint32(at, c.length, false);
    out.set(c, at + 4);
    at += 4 + c.length;
  }
  return out;
};
const decode = (bytes) => {
  const view = new DataView(bytes.buffer), all = [];
  for (let at = 0; at < bytes.length; ) {
    const n = view.getUint32(at);
    all.push(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(at + 4, at + 4 + n))));
    at += 4 + n;
  }
  return all;
};
const id = crypto.randomUUID();
const bytes = encode([{ id }, { text: "héllo" }]);
const back = decode(bytes);
const random = crypto.getRandomValues(new Uint8Array(16));
const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode("abc")));
const hex = Array.from(digest, (b) => b.toString(16).padStart(2, "0")).join("");
return {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(back[0].id) && back[0].id === id,
  text: back[1].text, random: random.some((b) => b !== 0), hex,
};
