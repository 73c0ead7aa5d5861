"""A tool-use loop with definitions and content blocks as Claude's messages have them.

It runs without a key, with a model that follows a script. With a key, `model` is:

    Anthropic().messages.create(model=…, max_tokens=…, messages=messages, tools=tools).to_dict()
"""

import json
from typing import Any, Dict, List

from sandbox_tools import SCRIPT, TOOLS, SandboxTools, conclusion

Message = Dict[str, Any]


def model(messages: List[Message], tools: List[Dict[str, Any]]) -> Message:
    assert {t['name'] for t in tools} >= {name for name, _ in SCRIPT}
    results = [block['content'] for m in messages if m['role'] == 'user'
               for block in m['content'] if block['type'] == 'tool_result']
    if len(results) == len(SCRIPT):
        content: List[Dict[str, Any]] = [{'type': 'text', 'text': conclusion(results)}]
        return {'role': 'assistant', 'stop_reason': 'end_turn', 'content': content}
    name, arguments = SCRIPT[len(results)]
    return {'role': 'assistant', 'stop_reason': 'tool_use', 'content': [
        {'type': 'tool_use', 'id': f'toolu_{len(results)}', 'name': name, 'input': arguments}]}


def main() -> None:
    tools = [{'name': one['name'], 'description': one['description'],
              'input_schema': one['parameters']} for one in TOOLS]
    question = {'type': 'text', 'text': 'What is the tenth Fibonacci number?'}
    messages: List[Message] = [{'role': 'user', 'content': [question]}]
    with SandboxTools() as sandbox:
        while True:
            answer = model(messages, tools)
            messages.append({'role': 'assistant', 'content': answer['content']})
            if answer['stop_reason'] != 'tool_use':
                break
            results = []
            for block in answer['content']:
                if block['type'] == 'tool_use':
                    result = sandbox.call(block['name'], block['input'])
                    results.append({'type': 'tool_result', 'tool_use_id': block['id'],
                                    'content': result, 'is_error': 'code' in json.loads(result)})
            messages.append({'role': 'user', 'content': results})
    print(messages[-1]['content'][0]['text'])


if __name__ == '__main__':
    main()
