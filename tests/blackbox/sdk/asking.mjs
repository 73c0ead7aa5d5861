// What a server that asks its client gets from an SDK, whatever the road of the questions is. Reads
// {server, mode} from standard input, prints what the tools said as JSON.
import { readFileSync } from 'node:fs';
import { end } from './transport.mjs';

export const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const filled = { name: 'Alice', color: 'blue', username: 'alice', email: 'a@b.example', confirm: true, ok: true, context: 'here' };

// To be given to setRequestHandler, by method.
export function answers(asked) {
	return {
		'elicitation/create': async ({ params }) => {
			asked.push(params.mode ?? 'form');
			return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: filled };
		},
		'sampling/createMessage': async () => {
			asked.push('sampling');
			return { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } };
		},
		'roots/list': async () => {
			asked.push('roots');
			return { roots: [{ uri: 'file:///r' }] };
		},
	};
}

const tools = {
	test_elicitation: { message: 'Who?' },
	test_elicitation_url: {},
	test_sampling: { prompt: 'Capital?' },
	test_input_required_result_multi_round: {},
	test_input_required_result_multiple_inputs: {},
	test_input_required_result_request_state: {},
};

export async function main(connect) {
	const input = JSON.parse(readFileSync(0, 'utf8'));
	const asked = [], said = {};
	const { client, version, more } = await connect(input, asked);
	for (const [name, args] of Object.entries(tools))
		said[name] = (await client.callTool({ name, arguments: args })).content[0].text;
	const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
	said.prompt = messages[0].content.text;
	Object.assign(said, await more?.());
	await client.close();
	end({ asked, said, version });
}
