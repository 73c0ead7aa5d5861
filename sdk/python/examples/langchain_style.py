"""A tool-use loop with tools and messages in the shapes that LangChain has.

It runs without a key and without LangChain, with a model that follows a script. With both:

    tools = [StructuredTool.from_function(partial(sandbox.call, one['name']), name=one['name'],
                                          description=one['description'],
                                          args_schema=one['parameters']) for one in TOOLS]
    model = ChatOpenAI().bind_tools(tools)
"""

from typing import Any, Dict, List, NamedTuple

from sandbox_tools import SCRIPT, TOOLS, SandboxTools, conclusion


class Tool(NamedTuple):
    """Of it as much as the loop needs."""

    name: str
    description: str
    args_schema: Dict[str, Any]
    sandbox: SandboxTools

    def invoke(self, args: Dict[str, Any]) -> str:
        return self.sandbox.call(self.name, args)


class HumanMessage(NamedTuple):
    content: str


class AIMessage(NamedTuple):
    content: str
    tool_calls: List[Dict[str, Any]]


class ToolMessage(NamedTuple):
    content: str
    tool_call_id: str


class ScriptedModel:
    def __init__(self, tools: List[Tool]) -> None:
        assert {t.name for t in tools} >= {name for name, _ in SCRIPT}

    def invoke(self, messages: List[Any]) -> AIMessage:
        results = [m.content for m in messages if isinstance(m, ToolMessage)]
        if len(results) == len(SCRIPT):
            return AIMessage(conclusion(results), [])
        name, args = SCRIPT[len(results)]
        return AIMessage('', [{'name': name, 'args': args, 'id': str(len(results))}])


def main() -> None:
    with SandboxTools() as sandbox:
        tools = {one['name']: Tool(one['name'], one['description'], one['parameters'], sandbox)
                 for one in TOOLS}
        model = ScriptedModel(list(tools.values()))
        messages: List[Any] = [HumanMessage('What is the tenth Fibonacci number?')]
        while True:
            answer = model.invoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                result = tools[call['name']].invoke(call['args'])
                messages.append(ToolMessage(result, call['id']))
    print(messages[-1].content)


if __name__ == '__main__':
    main()
