import { search_files, read_text_file } from "host:mcp-filesystem";

const found = await search_files({ path: "/data", pattern: "**/*.js" });
const files = found.text.split("\n").filter(Boolean);
const todos = (
  await Promise.all(
    files.map(async (path) => {
      const { text } = await read_text_file({ path });
      return text
        .split("\n")
        .map((line, i) => ({ file: path.split("/").pop(), line: i + 1, match: line.match(/\b(TODO|FIXME)\b(?:\((\w+)\))?:\s*(.*)/) }))
        .filter((x) => x.match)
        .map(({ file, line, match }) => `${file}:${line} ${match[1]}${match[2] ? "@" + match[2] : ""} ${match[3]}`);
    })
  )
).flat().sort();
console.log("%d TODOs in %d files", todos.length, files.length);
return todos;
