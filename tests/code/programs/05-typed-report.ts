import { read_text_file } from "host:mcp-filesystem";

interface User {
  id: number;
  name: string;
  email: string;
  created: string;
  tags: string[];
}

type Summary = { domain: string; users: string[] };

const raw = await read_text_file({ path: "/data/users.json" });
const users: User[] = JSON.parse(raw.text);

function byDomain(list: User[]): Summary[] {
  const map = new Map<string, string[]>();
  for (const u of list) {
    const domain = u.email.split("@")[1]!;
    map.set(domain, [...(map.get(domain) ?? []), u.name]);
  }
  return [...map].map(([domain, users]): Summary => ({ domain, users }));
}

const summary: Summary[] = byDomain(users);
console.log(`Found ${users.length as number} users in ${summary.length} domains`);
return summary;
