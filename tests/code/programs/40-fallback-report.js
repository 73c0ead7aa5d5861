import { read_text_file, list_allowed_directories, get_file_info } from "host:mcp-filesystem";
import { parallel } from "host:holt";

const report = { started: typeof Date.now() === "number", steps: [] };
const step = async (name, fn) => {
  console.time(name);
  try {
    report.steps.push({ name, ok: true, value: await fn() });
  } catch (err) {
    report.steps.push({ name, ok: false, error: err instanceof Error ? err.message : String(err) });
  }
};

await step("roots", async () => (await list_allowed_directories({})).text.split("\n").length);
await step("missing", async () => {
  const r = await read_text_file({ path: "/data/nope.txt" });
  if (!r.ok) throw new Error(r.error.split(",")[0]);
});
await step("info", async () => {
  const info = (await get_file_info({ path: "/data/sales.csv" })).text;
  return Number(/size: (\d+)/.exec(info)[1]);
});
await step("network", async () => {
  const res = await fetch("https://api.example.com/health");
  return res.status;
});
const [a, b] = parallel([
  () => read_text_file({ path: "/data/sales.csv", head: 1 }),
  () => read_text_file({ path: "/data/sales.csv", tail: 2 }),
]);
report.ends = [a.text.split(",")[0], b.text.trim().split(",")[0]];
report.network = report.steps[3].ok;
report.steps = report.steps.map(({ name, ok }) => `${name}:${ok}`);
return report;
