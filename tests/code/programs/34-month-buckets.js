import { read_text_file } from "host:mcp-filesystem";

const issues = JSON.parse((await read_text_file({ path: "/data/issues.json" })).text);
const buckets = {};
for (const i of issues) {
  const d = new Date(i.created_at);
  const key = d.toLocaleString("en-US", { month: "short", year: "numeric", timeZone: "UTC" });
  (buckets[key] ??= []).push(i.number);
}
const latest = issues.map((i) => new Date(i.created_at)).sort((a, b) => b - a)[0];
return {
  months: Object.keys(buckets).length,
  january: buckets["Jan 2026"],
  latest: latest.toLocaleDateString("en-US"),
  time: latest.toLocaleTimeString("en-US", { hour: "2-digit", minute: "2-digit" }),
  iso: latest.toISOString().slice(0, 10),
};
