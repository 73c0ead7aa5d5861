import * as fs from "host:mcp-filesystem";

const todo = (await fs.read_text_file({ path: "/data/notes/todo.md" })).text;
const links = [...todo.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text, href]) => {
  const url = new URL(href);
  return { text, host: url.hostname, path: url.pathname, lang: url.searchParams.get("lang"), hash: url.hash };
});

const log = (await fs.read_text_file({ path: "/data/logs/app.log" })).text;
const ids = log
  .split("\n")
  .filter((l) => l.includes("GET /api/"))
  .map((l) => new URL(l.match(/GET (\S+)/)[1], "http://localhost:8080"))
  .map((u) => Object.fromEntries(u.searchParams.entries()));

export default { links, ids };
