import { create_directory, write_file, list_directory, move_file } from "host:mcp-filesystem";

await create_directory({ path: "/data/out" });
await Promise.all([1, 2, 10, 20, 3].map((n) => write_file({ path: `/data/out/Part ${n}.txt`, content: "x".repeat(n) })));
await move_file({ source: "/data/out/Part 20.txt", destination: "/data/out/appendix.txt" });
const names = (await list_directory({ path: "/data/out" })).text
  .split("\n")
  .map((l) => l.replace(/^\[\w+\] /, ""))
  .filter((n) => n.endsWith(".txt"));
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const sorted = names.toSorted(collator.compare);
const plain = ["b", "A", "a", "B", "é", "e"].sort((x, y) => x.localeCompare(y));
return { sorted, plain };
