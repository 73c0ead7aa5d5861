import { read_text_file } from "host:mcp-filesystem";
const users = JSON.parse((await read_text_file({ path: "/data/users.json" })).text);
const [ada, grace, alan] = users.map((u) => new Set(u.tags));

console.log(ada.union(alan), ada.intersection(alan));
export default {
  all: ada.union(grace).union(alan),
  common: [...ada.intersection(alan)],
  onlyAda: [...ada.difference(alan)],
  subset: grace.isSubsetOf(ada),
  byTag: new Map([["dev", users.length], ["admin", 1]]),
};
