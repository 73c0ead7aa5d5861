/**
 * A tool-use loop with tools and messages in the shapes that LangChain has.
 *
 * It runs without a key and without LangChain, with a model that follows a script. With both:
 *
 *     const tools = TOOLS.map(({ name, description, parameters }) =>
 *     	tool((args) => sandbox.call(name, args), { name, description, schema: parameters }));
 *     const model = new ChatOpenAI().bindTools(tools);
 */
import { SCRIPT, SandboxTools, TOOLS, conclusion } from './sandbox-tools.js';

interface ToolCall {
	name: string;
	args: Record<string, any>;
	id: string;
}
type Message =
	| { type: 'human'; content: string }
	| { type: 'ai'; content: string; tool_calls: ToolCall[] }
	| { type: 'tool'; content: string; tool_call_id: string };

const model = {
	async invoke(messages: Message[]): Promise<Extract<Message, { type: 'ai' }>> {
		const results = messages.flatMap((m) => (m.type === 'tool' ? [m.content] : []));
		const step = SCRIPT[results.length];
		if (!step) return { type: 'ai', content: conclusion(results), tool_calls: [] };
		return { type: 'ai', content: '', tool_calls: [{ ...step, id: String(results.length) }] };
	},
};

await using sandbox = await SandboxTools.create();
const tools = new Map(
	TOOLS.map(({ name, description, parameters: schema }) => [
		name,
		{
			name,
			description,
			schema,
			invoke: (args: ToolCall['args']) => sandbox.call(name, args),
		},
	]),
);
const messages: Message[] = [{ type: 'human', content: 'What is the tenth Fibonacci number?' }];
for (;;) {
	const answer = await model.invoke(messages);
	messages.push(answer);
	if (!answer.tool_calls.length) {
		console.log(answer.content);
		break;
	}
	for (const { name, args, id } of answer.tool_calls) {
		const content = await tools.get(name)!.invoke(args);
		messages.push({ type: 'tool', content, tool_call_id: id });
	}
}
