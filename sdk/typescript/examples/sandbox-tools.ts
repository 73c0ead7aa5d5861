/**
 * Three tools of a sandbox, for whatever model: the examples beside this file show them to models
 * of three kinds.
 *
 * The application decides what may be done: image, network, times and sizes are its own, and a
 * model chooses paths, contents and commands. What fails is told to the model in terms that help.
 */
import { HoltError, NetworkPolicy, Sandbox } from '@holt/sdk';

type Arguments = Record<string, any>;

const text = (description: string) => ({ type: 'string', description });

function tool(name: string, description: string, properties: Record<string, object>) {
	const required = Object.keys(properties);
	const parameters = { type: 'object', properties, required, additionalProperties: false };
	return { name, description, parameters };
}

export const TOOLS = [
	tool('write_file', 'Writes a text file.', {
		path: text('Such as main.py.'),
		content: text('All that is in it then.'),
	}),
	tool('read_file', 'Reads a text file.', { path: text('Such as main.py.') }),
	tool('run_command', 'Runs a program without a shell, for 20 s at most.', {
		command: {
			type: 'array',
			items: { type: 'string' },
			description: 'The program and its arguments.',
		},
	}),
];

/** The tools of one conversation. `await using` ends the sandbox with the block. */
export class SandboxTools {
	private constructor(private readonly sandbox: Sandbox) {}

	static async create(): Promise<SandboxTools> {
		const network = NetworkPolicy.denyByDefault();
		return new SandboxTools(await Sandbox.create({ image: 'host', network, ttlSeconds: 600 }));
	}

	/** What to answer the model: JSON, also of what failed. */
	async call(name: string, args: Arguments): Promise<string> {
		const { files, commands } = this.sandbox;
		try {
			if (name === 'write_file') {
				await files.write(args.path, args.content);
				return JSON.stringify({ written: args.path });
			}
			if (name === 'read_file') {
				const content = await files.read(args.path, { maxBytes: 64 << 10 });
				return JSON.stringify({ content });
			}
			if (name === 'run_command') {
				const limits = { timeoutSeconds: 20, maxOutputBytes: 16 << 10 };
				const done = await commands.run(args.command, limits);
				const { exitCode, stdout, stderr, timedOut, auditId } = done;
				return JSON.stringify({ exitCode, stdout, stderr, timedOut, auditId });
			}
			return JSON.stringify({ code: 'invalid_arguments', cause: `there is no tool ${name}` });
		} catch (e) {
			if (e instanceof HoltError) return JSON.stringify(e);
			throw e;
		}
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.sandbox.close();
	}
}

/** What the scripted models of the examples want, one step after the other. */
const PROGRAM = 'a, b = 0, 1\nfor _ in range(10):\n    a, b = b, a + b\nprint(a)\n';
export const SCRIPT: { name: string; args: Arguments }[] = [
	{ name: 'read_file', args: { path: 'fibonacci.py' } },
	{ name: 'write_file', args: { path: 'fibonacci.py', content: PROGRAM } },
	{ name: 'run_command', args: { command: ['python3', 'fibonacci.py'] } },
];

/** What they say at the end, of what they were answered. */
export function conclusion(results: string[]): string {
	const { code } = JSON.parse(results[0]!);
	const { stdout } = JSON.parse(results.at(-1)!);
	return `There was no such file (${code}); now it prints ${stdout.trim()}.`;
}
