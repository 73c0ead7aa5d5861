import { read_text_file } from "host:mcp-filesystem";

const log = (await read_text_file({ path: "/data/git-log.txt" })).text;
const commits = log.split(/^commit /m).slice(1).map((block) => {
  const [hash] = block.match(/^[0-9a-f]{40}/);
  const [, author, email] = block.match(/^Author: (.*) <(.*)>$/m);
  const date = new Date(block.match(/^Date:\s+(.*)$/m)[1]);
  const subject = block.split("\n\n")[1].trim();
  const pr = subject.match(/\(#(\d+)\)$/)?.[1];
  return { hash: hash.slice(0, 7), author, email, date, subject, ...(pr && { pr: +pr }) };
});
const perAuthor = Map.groupBy(commits, (c) => c.author);
return {
  latest: commits[0],
  authors: [...perAuthor].map(([name, list]) => `${name} (${list.length})`),
  changelog: commits.filter((c) => c.subject.startsWith("parser:")).map((c) => "- " + c.subject),
};
