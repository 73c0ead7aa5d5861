const { read_text_file } = require("host:mcp-filesystem");

const { data } = await read_text_file({ path: "/data/logs/app.log" });
const pattern = /^(?<time>\S+) (?<level>[A-Z]+) \[(?<source>\w+)\] (?<message>.*)$/gm;
const entries = [...data.content.matchAll(pattern)].map((m) => ({ ...m.groups }));

const counts = entries.reduce((acc, e) => {
  acc[e.level] = (acc[e.level] || 0) + 1;
  return acc;
}, {});
const errors = entries.filter((e) => e.level === "ERROR");
console.log("Levels:", counts);
console.log("First error at", new Date(errors[0].time).toISOString());
const first = new Date(entries[0].time), last = new Date(entries.at(-1).time);
const minutes = Math.round((last - first) / 60000);
({ counts, minutes, errors: errors.map((e) => `${e.source}: ${e.message}`) })
