"""The page in Chromium, by the driver of its tests."""

import json
import os
import shutil
import subprocess
import sys

from hub import HOLT, TOP
from who import NEW_NODE

PAGE = os.path.join(TOP, 'tests/page')

# What a page tells of itself while it is looked at: frames, tasks of more than 50 ms, and how old
# the newest times of agents are when they stand in it. Those are numbers of 19 digits.
WATCH = '''
const cdp = await page.context().newCDPSession(page);
await cdp.send('Performance.enable');
const numbers = async () => Object.fromEntries(
	(await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]));
const asked = [];
const on = (request) => asked.push(new URL(request.url()).pathname);
page.on('request', on);
const before = await numbers();
const seen = await page.evaluate(async (ms) => {
	const ages = [], gaps = [], tasks = [];
	const watch = new PerformanceObserver((list) =>
		tasks.push(...list.getEntries().map((e) => e.duration)));
	watch.observe({ type: 'longtask' });
	let newest = '';
	for (let last = performance.now(), end = last + ms; last < end;) {
		await new Promise(requestAnimationFrame);
		const now = performance.now();
		gaps.push(now - last);
		last = now;
		const said = [...document.querySelectorAll('.transcript .event')].slice(-4);
		const times = said.flatMap((e) => e.textContent.match(/\\d{19}/g) ?? []).sort();
		for (const time of times.filter((t) => t > newest))
			newest && ages.push(performance.timeOrigin + now - Number(time) / 1e6);
		newest = times.at(-1) ?? newest;
	}
	watch.disconnect();
	return { ages, gaps, tasks };
}, arg * 1000);
const after = await numbers();
page.off('request', on);
await cdp.send('HeapProfiler.collectGarbage');
const { JSHeapUsedSize, Nodes } = await numbers();
await cdp.detach();
return { ...seen, asked: asked.length, busy: (after.TaskDuration - before.TaskDuration) / arg,
	heap: JSHeapUsedSize / 2 ** 20, nodes: Nodes };
'''
LIST = '''
await page.goto(arg.url);
const rows = await page.waitForFunction((n) =>
	document.querySelectorAll('li.row').length >= n && performance.now(), arg.n);
return rows.jsonValue();
'''
# By the link of the list, and back to the list.
OPEN = '''
return page.evaluate(async ({ id, n }) => {
	const until = async (so) => {
		while (!so())
			await new Promise(requestAnimationFrame);
	};
	const begun = performance.now();
	document.querySelector(`li.row a[href="/c/${id}"]`).click();
	await until(() => document.querySelectorAll('.transcript .event').length >= n);
	const took = performance.now() - begun;
	document.querySelector('nav.rail a[href="/c"]').click();
	await until(() => document.querySelector(`li.row a[href="/c/${id}"]`));
	return took;
}, arg);
'''


class Browser:
    """A browser that is logged in to the hub's page."""

    def __init__(self, hub):
        program = shutil.which('chromium-headless-shell') or shutil.which('chromium')
        if not program or not os.path.exists(NEW_NODE) or not os.path.isdir(f'{PAGE}/node_modules'):
            sys.exit('bench: Chromium, Node.js or packages are missing: scripts/deps test')
        env = {**os.environ, 'HOLT_HOME': os.path.join(hub.home, 'hub')}
        link = subprocess.run([HOLT, 'web'], env=env, check=True, capture_output=True,
                              text=True).stdout.strip()
        self.url = link.partition('/login')[0]
        self.proc = subprocess.Popen([NEW_NODE, 'driver.mjs', program, hub.work], cwd=PAGE,
                                     text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     env={**os.environ, 'HOME': hub.work})
        if self.proc.stdout.readline() != 'ready\n':
            sys.exit('bench: the browser does not start')
        self.run('await page.goto(arg); await page.waitForSelector("nav.rail");', link)

    def run(self, code, arg=None):
        self.proc.stdin.write(json.dumps({'id': 1, 'page': 'one', 'code': code, 'arg': arg}) + '\n')
        self.proc.stdin.flush()
        message = json.loads(self.proc.stdout.readline())
        if 'error' in message:
            sys.exit(f'bench: the page: {message["error"]}')
        return message['value']

    def list(self, n):
        """Ms from the navigation to a list of so many."""
        return self.run(LIST, {'url': self.url + '/c', 'n': n})

    def open(self, talk, n):
        """Ms from the click to so many of its events; then the list is there again."""
        return self.run(OPEN, {'id': talk, 'n': n})

    def watch(self, seconds, path=None):
        if path:
            self.run('await page.goto(arg); await page.waitForSelector(".transcript .event");',
                     self.url + path)
        return self.run(WATCH, seconds)

    def close(self):
        self.proc.stdin.close()
        self.proc.wait()
