import { create_entities, create_relations, read_graph, search_nodes } from "host:mcp-memory";

await create_entities({
  entities: [
    { name: "parser", entityType: "component", observations: ["written in C"] },
    { name: "Ada", entityType: "person", observations: ["maintains the parser"] },
  ],
});
await create_relations({ relations: [{ from: "Ada", to: "parser", relationType: "maintains" }] });
const graph = (await read_graph({})).data;
const found = (await search_nodes({ query: "written" })).data.entities.map((e) => e.name);
return {
  entities: graph.entities.length,
  relations: graph.relations.map((r) => `${r.from} ${r.relationType} ${r.to}`),
  found,
};
