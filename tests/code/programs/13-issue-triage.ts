import { read_text_file, write_file } from "host:mcp-filesystem";

enum Priority { Low = 1, Medium, High }

interface Issue {
  number: number;
  title: string;
  state: "open" | "closed";
  labels: string[];
  comments: number;
}

class Triage {
  private readonly issues: Issue[] = [];
  constructor(private limit: number = 3) {}

  add(...more: Issue[]): this {
    this.issues.push(...more);
    return this;
  }

  static priority(issue: Issue): Priority {
    if (issue.labels.includes("bug")) return issue.comments > 1 ? Priority.High : Priority.Medium;
    return Priority.Low;
  }

  top(): Array<{ number: number; priority: string }> {
    return this.issues
      .filter((i) => i.state === "open")
      .sort((a, b) => Triage.priority(b) - Triage.priority(a) || a.number - b.number)
      .slice(0, this.limit)
      .map((i) => ({ number: i.number, priority: Priority[Triage.priority(i)] }));
  }
}

const { data } = await read_text_file({ path: "/data/issues.json" });
const issues = JSON.parse(data.content) as Issue[];
const top = new Triage(4).add(...issues).top();
await write_file({ path: "/data/triage.md", content: top.map((t) => `- #${t.number}: ${t.priority}`).join("\n") });
export default top;
