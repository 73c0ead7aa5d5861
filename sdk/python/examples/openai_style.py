"""A tool-use loop with definitions and messages as OpenAI's chat completions have them.

It runs without a key, with a model that follows a script. With a key, `model` is:

    OpenAI().chat.completions.create(model=…, messages=messages, tools=tools).choices[0].message
"""

import json
from typing import Any, Dict, List

from sandbox_tools import SCRIPT, TOOLS, SandboxTools, conclusion

Message = Dict[str, Any]


def model(messages: List[Message], tools: List[Dict[str, Any]]) -> Message:
    assert {t['function']['name'] for t in tools} >= {name for name, _ in SCRIPT}
    results = [m['content'] for m in messages if m['role'] == 'tool']
    if len(results) == len(SCRIPT):
        return {'role': 'assistant', 'content': conclusion(results)}
    name, arguments = SCRIPT[len(results)]
    return {'role': 'assistant', 'content': None, 'tool_calls': [
        {'id': f'call_{len(results)}', 'type': 'function',
         'function': {'name': name, 'arguments': json.dumps(arguments)}}]}


def main() -> None:
    tools = [{'type': 'function', 'function': one} for one in TOOLS]
    messages: List[Message] = [{'role': 'user', 'content': 'What is the tenth Fibonacci number?'}]
    with SandboxTools() as sandbox:
        while True:
            answer = model(messages, tools)
            messages.append(answer)
            if not answer.get('tool_calls'):
                break
            for call in answer['tool_calls']:
                asked = call['function']
                result = sandbox.call(asked['name'], json.loads(asked['arguments']))
                messages.append({'role': 'tool', 'tool_call_id': call['id'], 'content': result})
    print(messages[-1]['content'])


if __name__ == '__main__':
    main()
