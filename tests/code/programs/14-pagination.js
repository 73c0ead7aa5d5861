import { read_text_file } from "host:mcp-filesystem";

// Reads the log page by page, as an API with cursors would give it.
async function* pages(path, size) {
  const all = (await read_text_file({ path })).text.trim().split("\n");
  for (let cursor = 0; cursor < all.length; cursor += size) {
    await new Promise((r) => setTimeout(r, 5));
    yield { items: all.slice(cursor, cursor + size), next: cursor + size < all.length ? cursor + size : null };
  }
}

const seen = [];
let count = 0;
for await (const page of pages("/data/logs/app.log", 4)) {
  count++;
  seen.push(...page.items.map((l) => l.split(" ")[1]));
  if (page.next === null) break;
}
return { count, levels: [...new Set(seen)].sort() };
