"""Agents of others, each as an entry of `agents` whose model is ours (tests/agents/model.py), a
service of the hub at model.holt."""

import glob
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
AGENTS = os.path.join(os.path.dirname(HERE), 'agents')
LARGE = os.path.join(AGENTS, 'large')
NODE = os.path.realpath(shutil.which('node') or 'node')

sys.path.append(AGENTS)
from model import Model  # noqa: E402, F401

MODEL_HOST = 'model.holt'
URL = f'http://{MODEL_HOST}'
KEY = 'no-key-of-anybody'

CODEX = f'''model = "scripted-1"
model_provider = "ours"
[model_providers.ours]
name = "ours"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
'''
OPENCODE = {
    'autoupdate': False, 'permission': {'bash': 'ask', 'edit': 'ask'}, 'model': 'ours/scripted-1',
    'provider': {'ours': {'npm': '@ai-sdk/openai-compatible', 'name': 'ours',
                          'options': {'baseURL': f'{URL}/v1', 'apiKey': KEY},
                          'models': {'scripted-1': {'name': 'Scripted'}}}}}
GEMINI = {'privacy': {'usageStatisticsEnabled': False}, 'general': {'disableAutoUpdate': True}}


def settings(name, path):
    """What a preset puts into a file of its agent."""
    top = os.path.dirname(os.path.dirname(HERE))
    with open(os.path.join(top, 'presets', 'agents', f'{name}.json'), encoding='utf-8') as f:
        return json.load(f)['settings'][path]


# program: its file below node_modules, by node if it is a script. files: what its state folder has
# to begin with; STATE in env is that folder. free: the option by which it
# edits without asking. asks: false where it never does. knows_no_new_files: it takes the failure to
# read a file, which is none of Node's when the client answers, for no sign that there is none. out:
# why it is not driven.
TABLE = {
    'claude': {
        'program': '@agentclientprotocol/claude-agent-acp/dist/index.js',
        'env': {'ANTHROPIC_BASE_URL': URL, 'ANTHROPIC_API_KEY': KEY, 'CLAUDE_CONFIG_DIR': 'STATE',
                'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'DISABLE_AUTOUPDATER': '1'},
        'files': {'settings.json': {'permissions': {'defaultMode': 'default'}}},
        'free': 'mode=acceptEdits'},
    'codex-zed': {
        'program': '@zed-industries/codex-acp-linux-x64/bin/codex-acp',
        'env': {'CODEX_HOME': 'STATE', 'OPENAI_API_KEY': KEY}, 'authMethod': 'openai-api-key',
        'files': {'config.toml': f'''approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
{CODEX}'''}},
    'gemini': {
        'program': '@google/gemini-cli/bundle/gemini.js', 'args': ['--acp', '-m', 'scripted-1'],
        'env': {'GOOGLE_GEMINI_BASE_URL': URL, 'GEMINI_API_KEY': KEY,
                'GEMINI_CLI_TRUST_WORKSPACE': 'true', 'GEMINI_CLI_HOME': 'STATE'},
        'files': {'.gemini/settings.json': GEMINI},
        'knows_no_new_files': True, 'authMethod': 'gemini-api-key', 'free': 'mode=autoEdit'},
    'copilot': {
        'program': '@github/copilot-linux-x64/copilot', 'args': ['--acp'],
        'env': {'COPILOT_PROVIDER_BASE_URL': f'{URL}/v1', 'COPILOT_PROVIDER_TYPE': 'openai',
                'COPILOT_PROVIDER_API_KEY': KEY, 'COPILOT_MODEL': 'scripted-1',
                'COPILOT_OFFLINE': 'true', 'HOME': 'STATE'}},
    'codex': {
        'program': '@agentclientprotocol/codex-acp/dist/index.js', 'large': True,
        'env': {'CODEX_HOME': 'STATE', 'OPENAI_API_KEY': KEY, 'NO_BROWSER': '1',
                'INITIAL_AGENT_MODE': 'agent-full-access'},
        'authMethod': 'api-key', 'asks': False,
        'files': {'config.toml': settings('codex', '~/.codex/config.toml')['text'] + CODEX}},
    'opencode': {
        'program': 'opencode-linux-x64/bin/opencode', 'args': ['acp'], 'large': True,
        # It does not start beside a .opencode or opencode.json that it can't read as it expects, or
        # not write, as they are in a guarded folder.
        'env': {'OPENCODE_CONFIG': 'STATE/opencode.json', 'OPENCODE_DISABLE_PROJECT_CONFIG': '1'},
        'files': {'opencode.json': OPENCODE},
        'out': 'opencode ends each prompt with "OpenCode service failure" here: to be looked into'},
    'qwen': {
        'program': '@qwen-code/qwen-code/cli.js', 'large': True,
        'args': ['--acp', '--approval-mode', 'default'],
        'env': {'OPENAI_BASE_URL': f'{URL}/v1', 'OPENAI_API_KEY': KEY,
                'OPENAI_MODEL': 'scripted-1'},
        'authMethod': 'openai', 'free': 'mode=auto-edit'},
}


def program(name):
    one = TABLE[name]
    return os.path.join(LARGE if one.get('large') else AGENTS, 'node_modules', one['program'])


def missing(name):
    """Why an agent can't be driven here; None if it can."""
    if 'out' in TABLE[name]:
        return TABLE[name]['out']
    if not os.path.exists(program(name)):
        return f'{name} from npm is missing: ' + (
            'make test-agents' if TABLE[name].get('large') else 'scripts/deps test')
    return None


def made(name, who, folder):
    """The entry of an agent, whose state is a folder of its own below this one."""
    one = TABLE[name]
    state = os.path.join(folder, f'state-{name}')
    for path, content in {'': None, **one.get('files', {})}.items():
        path = os.path.join(state, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content is not None:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(content if isinstance(content, str) else json.dumps(content))
    for path in glob.glob(f'{state}/**', recursive=True, include_hidden=True):
        os.chown(path, who.uid, who.uid)
    command = [*([NODE] if program(name).endswith('.js') else []), program(name)]
    entry = {'command': command[0], 'args': command[1:] + one.get('args', []),
             'env': {k: v.replace('STATE', state) for k, v in one['env'].items()},
             'sandbox': {'read': [os.path.dirname(NODE), AGENTS],
                         'state': [state],
                         'network': [f'{MODEL_HOST}:80']}}
    if 'authMethod' in one:
        entry['authMethod'] = one['authMethod']
    return entry
