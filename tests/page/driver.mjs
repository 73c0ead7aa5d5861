// A browser for tests that are written elsewhere: node driver.mjs CHROMIUM FOLDER
// Each line of standard input is {"id", "page", "code", "arg"}: the code runs as a function of
// (page, arg, tools) on the page of that name, which is opened in a context of its own. The answer is
// {"id", "value"} or {"id", "error"}. Whatever a page must never do is kept, and given by tools.sins().
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [program, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
const pages = new Map();

function watch(page, sins) {
	page.on('console', (m) => m.type() === 'error' && sins.push(`console: ${m.text()} ${m.location().url}`));
	page.on('pageerror', (e) => sins.push(`error: ${e.stack}`));
	page.on('request', (r) => {
		const url = new URL(r.url());
		if (!['127.0.0.1', 'localhost'].includes(url.hostname) && url.protocol !== 'blob:')
			sins.push(`request: ${url}`);
	});
}

async function open(name) {
	if (pages.has(name))
		return pages.get(name);
	// "name/2" is a second tab of "name".
	const context = pages.get(name.split('/')[0])?.page.context()
		?? await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', ignoreHTTPSErrors: true });
	context.setDefaultTimeout(40000);
	const sins = [];
	const page = await context.newPage();
	watch(page, sins);
	await page.addInitScript(() => addEventListener('securitypolicyviolation', (e) =>
		console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`)));
	const one = { page, tools: {
		sins: () => sins.splice(0),
		shot: (file, options) => page.screenshot({ path: `${folder}/${file}.png`, ...options }),
		// The serious findings of axe, in both themes, which differ in colours alone.
		axe: async () => {
			const found = [];
			if (!await page.evaluate(() => 'axe' in window))
				await page.evaluate(axe);
			for (const [colorScheme, more] of [['dark', { runOnly: ['color-contrast'] }], ['light', {}]]) {
				await page.emulateMedia({ colorScheme });
				const { violations } = await page.evaluate((options) => window.axe.run(document, options), { resultTypes: ['violations'], ...more });
				found.push(...violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) =>
					`${colorScheme} ${v.id}: ${v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; ').slice(0, 600)}`));
			}
			return found;
		},
		// Tab through all that is shown: what it passes over or gets stuck in, and where no focus is seen.
		tour: async () => {
			const stops = await page.evaluate(() => {
				const within = document.querySelector('dialog[open]') ?? document;
				const all = [...within.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((e) =>
					!e.disabled && e.checkVisibility({ visibilityProperty: true }) && !e.closest('.xterm') && (e.type !== 'radio' || e.checked));
				all.forEach((e, i) => (e.dataset.stop = i));
				(all[1] ?? all[0]).focus();
				return all.length;
			});
			const wrong = [];
			for (let i = 0; i < stops; i++) {
				if (stops === 1)
					await page.keyboard.press('Tab'); // out of it, as there is nothing else
				await page.keyboard.press(i || stops === 1 ? 'Tab' : 'Shift+Tab');
				wrong.push(await page.evaluate((i) => {
					const e = document.activeElement;
					const seen = [e, e.closest('label, .button')].some((one) => one && getComputedStyle(one).outlineStyle !== 'none');
					return e.dataset.stop === String(i) && seen ? '' : `stop ${i}: ${e.outerHTML.slice(0, 200)}`;
				}, i));
			}
			await page.evaluate(() => document.querySelectorAll('[data-stop]').forEach((e) => delete e.dataset.stop));
			return wrong.filter(Boolean);
		},
	} };
	pages.set(name, one);
	return one;
}

const AsyncFunction = (async () => {}).constructor;
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
	const { id, page: name, code, arg } = JSON.parse(line);
	const answer = (async () => {
		const { page, tools } = await open(name);
		return new AsyncFunction('page', 'arg', 'tools', code)(page, arg, tools);
	})();
	answer.then((value) => ({ id, value: value ?? null }), (e) => ({ id, error: String(e?.stack ?? e) }))
		.then((message) => process.stdout.write(JSON.stringify(message) + '\n'));
}
await browser.close();
