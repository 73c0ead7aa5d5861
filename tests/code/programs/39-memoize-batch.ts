import * as memory from "host:mcp-memory";

namespace Names {
  export const prefix = "svc-";
  export function full(n: string): string { return prefix + n; }
}

type Key = keyof typeof limits;
const limits = { small: 1, large: 10 } as const;

const cache = new Map<Key, Promise<number>>();
function cost(kind: Key): Promise<number> {
  let p = cache.get(kind);
  if (!p) cache.set(kind, (p = (async () => limits[kind] * 2)()));
  return p;
}

declare const unused: string;
const services = ["api", "web", "db"].map(Names.full);
const costs = await Promise.all(services.map((_, i) => cost(i % 2 ? "large" : "small")));
await memory.create_entities({ entities: services.map((name, i) => ({ name, entityType: "service", observations: [`cost ${costs[i]}`] })) });
const { data } = await memory.search_nodes({ query: "cost 2" });
export default { total: costs.reduce((a, b) => a + b), hits: (data.entities as any[]).map((e: any) => e.name), cached: cache.size };
