const fs = require("host:mcp-filesystem");

(async () => {
  const issues = JSON.parse((await fs.read_text_file({ path: "/data/issues.json" })).text);
  const open = issues.filter(({ state, labels }) => state === "open" && labels.some((l) => /^(bug|feature)$/.test(l)));
  const columns = ["number", "title", "author"];
  const widths = columns.map((c) => Math.max(c.length, ...open.map((i) => String(i[c]).length)));
  const row = (cells) => `| ${cells.map((c, i) => String(c).padEnd(widths[i])).join(" | ")} |`;
  const table = [row(columns), `|${widths.map((w) => "-".repeat(w + 2)).join("|")}|`, ...open.map((i) => row(columns.map((c) => i[c])))].join("\n");
  const saved = await fs.write_file({ path: "/data/open.md", content: table });
  if (!saved.ok) throw new Error(saved.error);
  const check = await fs.read_text_file({ path: "/data/open.md", head: 3 });
  console.log(check.text);
  return open.length;
})();
