"""What a request to a model says and what its answers look like, in the dialects of four APIs.

A dialect reads a request into its turns, ('user', text), ('call', tool) and ('result', text) in
order, and the names of the offered tools with their namespaces: read(). It writes the pieces of an
answer, which are dicts: begin(), say(), think() and call() with the number of the part, end(). An
answer that is not streamed is one text: whole().
"""
import itertools
import json

ids = itertools.count(1)


def text_of(content):
    """Of a message, whose content is a string or a list of parts."""
    if isinstance(content, list):
        return '\n'.join(text_of(part.get('text', '')) for part in content)
    return content if isinstance(content, str) else json.dumps(content)


class Messages:
    """Anthropic's /v1/messages."""

    @staticmethod
    def read(body):
        turns = []
        for message in body['messages']:
            said = message['content']
            for part in [{'type': 'text', 'text': said}] if isinstance(said, str) else said:
                if part['type'] == 'tool_use':
                    turns.append(('call', part['name']))
                elif part['type'] == 'tool_result':
                    turns.append(('result', text_of(part.get('content', ''))))
                elif part['type'] == 'text':
                    turns.append((message['role'], part['text']))
        return turns, {t['name']: None for t in body.get('tools', [])}

    def begin(self, model):
        yield {'type': 'message_start', 'message': self.whole(model, '')}

    def block(self, at, block, *deltas):
        yield {'type': 'content_block_start', 'index': at, 'content_block': block}
        for delta in deltas:
            yield {'type': 'content_block_delta', 'index': at, 'delta': delta}
        yield {'type': 'content_block_stop', 'index': at}

    def say(self, at, text):
        return self.block(at, {'type': 'text', 'text': ''}, {'type': 'text_delta', 'text': text})

    def think(self, at, text):
        return self.block(at, {'type': 'thinking', 'thinking': '', 'signature': ''},
                          {'type': 'thinking_delta', 'thinking': text},
                          {'type': 'signature_delta', 'signature': 'c2lnbmVk'})

    def call(self, at, name, arguments):
        use = {'type': 'tool_use', 'id': f'toolu_{next(ids)}', 'name': name, 'input': {}}
        return self.block(at, use, {'type': 'input_json_delta',
                                    'partial_json': json.dumps(arguments)})

    def end(self, calls):
        yield {'type': 'message_delta', 'usage': {'output_tokens': 20}, 'delta': {
            'stop_reason': 'tool_use' if calls else 'end_turn', 'stop_sequence': None}}
        yield {'type': 'message_stop'}

    @staticmethod
    def whole(model, text):
        return {'id': f'msg_{next(ids)}', 'type': 'message', 'role': 'assistant', 'model': model,
                'content': [{'type': 'text', 'text': text}] if text else [],
                'stop_reason': 'end_turn' if text else None, 'stop_sequence': None,
                'usage': {'input_tokens': 10, 'output_tokens': 1}}


class Responses:
    """OpenAI's /v1/responses, always streamed."""

    def __init__(self):
        self.items, self.spaces, self.model = [], {}, None

    def read(self, body):
        turns, tools = [], list(body.get('tools', []))
        given = body['input']
        for item in [{'role': 'user', 'content': given}] if isinstance(given, str) else given:
            kind = item.get('type', 'message')
            if kind in ('function_call', 'custom_tool_call'):
                turns.append(('call', item['name']))
            elif kind in ('function_call_output', 'custom_tool_call_output'):
                turns.append(('result', text_of(item['output'])))
            elif kind == 'message':
                turns.append((item['role'], text_of(item['content'])))
            elif kind == 'additional_tools':
                tools += item['tools']
        for tool in tools:
            inner = tool['tools'] if tool['type'] == 'namespace' else [tool]
            self.spaces.update({t['name']: tool['name'] if inner != [tool] else None
                                for t in inner if 'name' in t})
        return turns, self.spaces

    def response(self, status):
        usage = {'input_tokens': 10, 'output_tokens': 20, 'total_tokens': 30,
                 'input_tokens_details': {'cached_tokens': 0},
                 'output_tokens_details': {'reasoning_tokens': 0}}
        return {'id': f'resp_{next(ids)}', 'object': 'response', 'created_at': 0, 'status': status,
                'model': self.model, 'output': self.items, 'usage': usage}

    def begin(self, model):
        self.model = model
        yield {'type': 'response.created', 'response': self.response('in_progress')}

    def item(self, at, item, empty, changes=None, **more):
        """empty: members that the item has before its delta."""
        yield {'type': 'response.output_item.added', 'output_index': at, 'item': {**item, **empty}}
        if changes:
            yield {'type': f'response.{changes}.delta', 'output_index': at, 'item_id': item['id'],
                   **more}
        self.items.append(item)
        yield {'type': 'response.output_item.done', 'output_index': at, 'item': item}

    def say(self, at, text):
        part = {'type': 'output_text', 'text': text, 'annotations': []}
        item = {'type': 'message', 'id': f'msg_{next(ids)}', 'role': 'assistant',
                'status': 'completed', 'content': [part]}
        return self.item(at, item, {'content': []}, 'output_text', delta=text, content_index=0)

    def think(self, at, text):
        item = {'type': 'reasoning', 'id': f'rs_{next(ids)}',
                'summary': [{'type': 'summary_text', 'text': text}]}
        return self.item(at, item, {'summary': []}, 'reasoning_summary_text', delta=text,
                         summary_index=0)

    def call(self, at, name, arguments):
        item = {'id': f'fc_{next(ids)}', 'call_id': f'call_{next(ids)}', 'name': name,
                'status': 'completed'}
        if isinstance(arguments, str):  # a program
            return self.item(at, {'type': 'custom_tool_call', 'input': arguments, **item}, {})
        if self.spaces.get(name):
            item['namespace'] = self.spaces[name]
        item |= {'type': 'function_call', 'arguments': json.dumps(arguments)}
        return self.item(at, item, {'arguments': ''}, 'function_call_arguments',
                         delta=item['arguments'])

    def end(self, _calls):
        yield {'type': 'response.completed', 'response': self.response('completed')}


class Chat:
    """OpenAI's /v1/chat/completions."""

    @staticmethod
    def read(body):
        turns = []
        for message in body['messages']:
            kind = 'result' if message['role'] == 'tool' else message['role']
            turns.append((kind, text_of(message.get('content') or '')))
            turns += [('call', c['function']['name']) for c in message.get('tool_calls') or []]
        return turns, {t['function']['name']: None for t in body.get('tools') or []}

    def chunk(self, delta, reason=None):
        choice = {'index': 0, 'delta': delta, 'finish_reason': reason}
        return {'id': 'chat_1', 'object': 'chat.completion.chunk', 'created': 0,
                'model': self.model, 'choices': [choice]}

    def begin(self, model):
        self.model = model
        yield self.chunk({'role': 'assistant', 'content': ''})

    def say(self, _at, text):
        yield self.chunk({'content': text})

    def think(self, _at, text):
        yield self.chunk({'reasoning_content': text})

    def call(self, _at, name, arguments):
        yield self.chunk({'tool_calls': [{
            'index': 0, 'id': f'call_{next(ids)}', 'type': 'function',
            'function': {'name': name, 'arguments': json.dumps(arguments)}}]})

    def end(self, calls):
        usage = {'prompt_tokens': 10, 'completion_tokens': 20, 'total_tokens': 30}
        yield {**self.chunk({}, 'tool_calls' if calls else 'stop'), 'usage': usage}
        yield None  # written as [DONE]

    @staticmethod
    def whole(model, text):
        message = {'role': 'assistant', 'content': text}
        return {'id': 'chat_1', 'object': 'chat.completion', 'created': 0, 'model': model,
                'choices': [{'index': 0, 'finish_reason': 'stop', 'message': message}]}


class Gemini:
    """Google's :generateContent and :streamGenerateContent."""

    @staticmethod
    def read(body):
        turns = []
        for content in body['contents']:
            for part in content['parts']:
                if 'functionCall' in part:
                    turns.append(('call', part['functionCall']['name']))
                elif 'functionResponse' in part:
                    turns.append(('result', json.dumps(part['functionResponse']['response'])))
                elif 'text' in part:
                    turns.append((content['role'], part['text']))
        return turns, {f['name']: None for t in body.get('tools', [])
                                   for f in t.get('functionDeclarations', [])}

    @staticmethod
    def candidate(part, **more):
        usage = {'promptTokenCount': 10, 'candidatesTokenCount': 20, 'totalTokenCount': 30}
        content = {'role': 'model', 'parts': [part]}
        return {'candidates': [{'index': 0, 'content': content, **more}], 'usageMetadata': usage}

    def begin(self, _model):
        return []

    def say(self, _at, text):
        yield self.candidate({'text': text})

    def think(self, _at, text):
        yield self.candidate({'text': text, 'thought': True})

    def call(self, _at, name, arguments):
        yield self.candidate({'functionCall': {'name': name, 'args': arguments}})

    def end(self, _calls):
        yield self.candidate({'text': ''}, finishReason='STOP')

    @classmethod
    def whole(cls, _model, text):
        return cls.candidate({'text': text}, finishReason='STOP')
