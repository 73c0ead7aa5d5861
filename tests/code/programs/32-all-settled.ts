import { read_text_file } from "host:mcp-filesystem";

const paths: string[] = ["/data/package.json", "/data/missing.json", "/data/sales.csv"];

async function load(path: string): Promise<{ path: string; size: number }> {
  const res = await read_text_file({ path });
  if (!res.ok) throw new Error(`cannot read ${path}`, { cause: res.error });
  return { path, size: res.text.length };
}

const settled = await Promise.allSettled(paths.map((p) => load(p)));
const ok = settled.filter((s): s is PromiseFulfilledResult<{ path: string; size: number }> => s.status === "fulfilled");
const failed = settled.filter((s) => s.status === "rejected") as PromiseRejectedResult[];
console.log(`${ok.length} read, ${failed.length} failed`);
export default {
  read: ok.map((s) => s.value.path),
  errors: failed.map((f) => f.reason.message),
  cause: /ENOENT|no such file/i.test(String(failed[0].reason.cause)),
};
