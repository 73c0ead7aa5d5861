import { read_text_file } from "host:mcp-filesystem";
import { create_entities, open_nodes } from "host:mcp-memory";

const { data: issues } = await read_text_file({ path: "/data/issues.json" }).then((r) => ({ data: JSON.parse(r.data.content) }));
const open = issues.filter((i) => i.state === "open" && i.labels.includes("bug"));
await create_entities({
  entities: open.map((i) => ({ name: `issue-${i.number}`, entityType: "issue", observations: [i.title, `by ${i.author}`] })),
});
const nodes = (await open_nodes({ names: ["issue-31", "issue-41", "issue-99"] })).data;
return nodes.entities.map((e) => `${e.name}: ${e.observations.join(", ")}`);
