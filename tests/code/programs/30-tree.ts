import { directory_tree } from "host:mcp-filesystem";

interface Node { name: string; type: "file" | "directory"; children?: Node[] }

const tree: Node[] = JSON.parse((await directory_tree({ path: "/data" })).text);

function* walk(nodes: Node[], prefix = ""): Generator<[path: string, node: Node]> {
  for (const node of nodes) {
    const path = `${prefix}/${node.name}`;
    yield [path, node];
    if (node.children) yield* walk(node.children, path);
  }
}

const files = [...walk(tree)].filter(([, n]) => n.type === "file").map(([p]) => p);
const byExt = Object.groupBy(files, (f: string) => f.split(".").at(-1)!);
const result = Object.fromEntries(Object.entries(byExt).map(([k, v]) => [k, v!.length] as [string, number]));
export default { md: result.md, js: result.js, csv: result.csv };
