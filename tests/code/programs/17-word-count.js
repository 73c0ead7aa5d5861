const { read_multiple_files } = require("host:mcp-filesystem");

async function main() {
  const res = await read_multiple_files({ paths: ["/data/notes/ideas.md", "/data/notes/todo.md"] });
  const words = new Map();
  const text = res.text.replace(/^\/.*:$/gm, "").normalize("NFD").replace(/\p{Diacritic}/gu, "").toLowerCase();
  for (const word of text.match(/\p{Letter}{4,}/gu) ?? []) {
    words.set(word, (words.get(word) ?? 0) + 1);
  }
  const top = [...words].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, 4);
  console.log(new Map(top));
  return top;
}

main();
