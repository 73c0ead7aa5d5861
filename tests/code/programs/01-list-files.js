import { list_directory, read_text_file } from "host:mcp-filesystem";

const listing = await list_directory({ path: "/data/notes" });
const names = listing.text.split("\n").filter(l => l.startsWith("[FILE]")).map(l => l.replace("[FILE] ", ""));
const result = {};
for (const name of names.sort()) {
  const file = await read_text_file({ path: `/data/notes/${name}` });
  result[name] = file.text.split("\n")[0];
}
return result;
