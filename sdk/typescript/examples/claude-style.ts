/**
 * A tool-use loop with definitions and content blocks as Claude's messages have them.
 *
 * It runs without a key, with a model that follows a script. With a key, `model` is:
 *
 *     await new Anthropic().messages.create({ model, max_tokens, messages, tools })
 */
import { SCRIPT, SandboxTools, TOOLS, conclusion } from './sandbox-tools.js';

type Block =
	| { type: 'text'; text: string }
	| { type: 'tool_use'; id: string; name: string; input: Record<string, any> }
	| { type: 'tool_result'; tool_use_id: string; content: string; is_error: boolean };
interface Message {
	role: 'user' | 'assistant';
	content: Block[];
}

async function model(messages: Message[]): Promise<Message & { stop_reason: string }> {
	const blocks = messages.flatMap((m) => m.content);
	const results = blocks.flatMap((b) => (b.type === 'tool_result' ? [b.content] : []));
	const step = SCRIPT[results.length];
	const content: Block[] = step
		? [{ type: 'tool_use', id: `toolu_${results.length}`, name: step.name, input: step.args }]
		: [{ type: 'text', text: conclusion(results) }];
	return { role: 'assistant', stop_reason: step ? 'tool_use' : 'end_turn', content };
}

export const tools = TOOLS.map(({ name, description, parameters }) => ({
	name,
	description,
	input_schema: parameters,
}));
const question: Block = { type: 'text', text: 'What is the tenth Fibonacci number?' };
const messages: Message[] = [{ role: 'user', content: [question] }];
await using sandbox = await SandboxTools.create();
for (;;) {
	const { content, stop_reason } = await model(messages);
	messages.push({ role: 'assistant', content });
	const results: Block[] = [];
	for (const block of content) {
		if (block.type === 'text') console.log(block.text);
		if (block.type !== 'tool_use') continue;
		const result = await sandbox.call(block.name, block.input);
		const is_error = 'code' in JSON.parse(result);
		results.push({ type: 'tool_result', tool_use_id: block.id, content: result, is_error });
	}
	if (stop_reason !== 'tool_use') break;
	messages.push({ role: 'user', content: results });
}
