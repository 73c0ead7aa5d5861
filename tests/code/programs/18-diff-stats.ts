import { read_text_file } from "host:mcp-filesystem";

type Hunk = { file: string; added: number; removed: number };

const diff: string = (await read_text_file({ path: "/data/change.diff" })).text;
const stats: Record<string, Hunk> = {};
let current: Hunk | undefined;

for (const line of diff.split("\n")) {
  const header = /^diff --git a\/(.+) b\/(.+)$/.exec(line);
  if (header) {
    current = stats[header[2]] = { file: header[2], added: 0, removed: 0 };
    continue;
  }
  if (!current || line.startsWith("+++") || line.startsWith("---")) continue;
  if (line.startsWith("+")) current.added += 1;
  else if (line.startsWith("-")) current.removed += 1;
}

const total = Object.values(stats).reduce<{ added: number; removed: number }>(
  (sum, { added, removed }) => ({ added: sum.added + added, removed: sum.removed + removed }),
  { added: 0, removed: 0 },
);
console.table(Object.values(stats), ["file", "added"]);
({ stats, total } satisfies { stats: Record<string, Hunk>; total: object });
