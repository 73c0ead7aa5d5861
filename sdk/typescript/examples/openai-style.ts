/**
 * A tool-use loop with definitions and messages as OpenAI's chat completions have them.
 *
 * It runs without a key, with a model that follows a script. With a key, `model` is:
 *
 *     (await new OpenAI().chat.completions.create({ model, messages, tools })).choices[0].message
 */
import { SCRIPT, SandboxTools, TOOLS, conclusion } from './sandbox-tools.js';

interface ToolCall {
	id: string;
	type: 'function';
	function: { name: string; arguments: string };
}
type Message =
	| { role: 'user'; content: string }
	| { role: 'assistant'; content: string | null; tool_calls?: ToolCall[] }
	| { role: 'tool'; tool_call_id: string; content: string };

async function model(messages: Message[]): Promise<Extract<Message, { role: 'assistant' }>> {
	const results = messages.flatMap((m) => (m.role === 'tool' ? [m.content] : []));
	const step = SCRIPT[results.length];
	if (!step) return { role: 'assistant', content: conclusion(results) };
	const asked = { name: step.name, arguments: JSON.stringify(step.args) };
	const call: ToolCall = { id: `call_${results.length}`, type: 'function', function: asked };
	return { role: 'assistant', content: null, tool_calls: [call] };
}

export const tools = TOOLS.map((one) => ({ type: 'function', function: one }));
const messages: Message[] = [{ role: 'user', content: 'What is the tenth Fibonacci number?' }];
await using sandbox = await SandboxTools.create();
for (;;) {
	const answer = await model(messages);
	messages.push(answer);
	if (!answer.tool_calls) {
		console.log(answer.content);
		break;
	}
	for (const { id, function: asked } of answer.tool_calls) {
		const content = await sandbox.call(asked.name, JSON.parse(asked.arguments));
		messages.push({ role: 'tool', tool_call_id: id, content });
	}
}
