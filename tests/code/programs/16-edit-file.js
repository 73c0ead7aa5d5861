import fs from "host:mcp-filesystem";

const path = "/data/package.json";
const pkg = JSON.parse((await fs.read_text_file({ path })).text);
const [major, minor, patch] = pkg.version.split(".").map(Number);
const next = `${major}.${minor + 1}.0`;
const edit = await fs.edit_file({
  path,
  edits: [{ oldText: `"version": "${pkg.version}"`, newText: `"version": "${next}"` }],
  dryRun: false,
});
if (!edit.ok) throw new Error(`edit failed: ${edit.error}`);
const after = JSON.parse((await fs.read_text_file({ path })).text);
console.log(edit.text.includes(`+  "version": "${next}"`) ? "diff ok" : edit.text);
return `${pkg.version} -> ${after.version}`;
