"""JSON Schemas for test_declarations.py: the idioms of both drafts, what generators write, hostile
ones, and as many that chance makes."""

import random


def props(**members):
    return {'type': 'object', 'properties': members}


def nested(n, inner, wrap):
    for _ in range(n):
        inner = wrap(inner)
    return inner


S = {'type': 'string'}
N = {'type': 'number'}
NASTY = [
    '*/ export const evil = 1; /*', '`${evil}`', '</script><script>', 'a\nb', 'a\r\nb',
    '"; evil(); "', "'''", '"""', '\\', '\\"', '\u2028x\u2029', '\u202eabc', '\x1b[31m',
    'a\u200bb', '\U000e0041', '日本', '👩\u200d💻', '{', '}', '//', '# x', '', ' ', '0', '-1', '1e3',
    'constructor', '__proto__', 'prototype', 'toString', 'default', 'class', 'lambda', 'None',
    'str', 'new', 'get', 'readonly', 'a-b', 'a.b', 'a b', '$x', 'x' * 500, '@deprecated', '%s%n',
]

IDIOMS = [
    True, False, {}, {'type': 'object'}, None, 1, 'x', [], {'type': 7}, {'type': 'strange'},
    {'type': []}, {'type': ['string', 'null']},
    {'type': ['object', 'null'], 'properties': {'a': S}}, {'type': 'string', 'nullable': True},
    props(a=S), dict(props(a=S, b=N), required=['a']), dict(props(a=S), required=['a', 'b']),
    dict(props(a=S), required='a'), dict(props(a=S), additionalProperties=False),
    dict(props(a=S), additionalProperties=True), dict(props(a=S), additionalProperties=N),
    {'type': 'object', 'additionalProperties': N},
    {'type': 'object', 'additionalProperties': {'type': 'array', 'items': S}},
    {'type': 'object', 'patternProperties': {'^a': N, '^b': S}}, {'patternProperties': {'(': N}},
    {'type': 'object', 'patternProperties': {'^a': N}, 'additionalProperties': False},
    {'type': 'object', 'propertyNames': {'pattern': '^a'}}, dict(props(a=S), minProperties=1),
    {'type': 'array'}, {'type': 'array', 'items': S}, {'type': 'array', 'items': True},
    {'type': 'array', 'items': False}, {'type': 'array', 'items': {}}, {'items': [S, N]},
    {'type': 'array', 'prefixItems': [S, N]}, {'type': 'array', 'prefixItems': [S], 'items': N},
    {'type': 'array', 'prefixItems': [S, N], 'items': False, 'minItems': 1},
    {'type': 'array', 'items': [S, N], 'additionalItems': {'type': 'boolean'}},
    {'type': 'array', 'items': [S, N], 'additionalItems': False}, {'prefixItems': []},
    {'type': 'array', 'items': {'anyOf': [S, N]}}, {'type': 'array', 'contains': S},
    {'enum': ['a', 'b']}, {'enum': [1, 2.5, -3, True, None, 'x']}, {'enum': []}, {'enum': 'a'},
    {'enum': [[1, 'a'], {'x': 1, 'y-z': [None]}]}, {'enum': list(range(100))},
    {'enum': list(range(1000))}, {'enum': [f'v{i}' for i in range(1000)] + [1, None]},
    {'const': 'a'}, {'const': 5}, {'const': None}, {'const': True}, {'const': {'a': [1, 2]}},
    {'const': 1.5}, {'const': 18446744073709551615}, {'const': -9223372036854775808},
    {'const': 1e+308}, {'const': 5e-324}, {'const': -0.0}, {'const': 1e+21}, {'const': 1e-07},
    {'type': 'integer', 'enum': ['a']}, {'type': 'string', 'enum': ['a', 'b'], 'default': 'a'},
    {'anyOf': [S, N]}, {'oneOf': [S, {'type': 'null'}]}, {'anyOf': []}, {'anyOf': [True, S]},
    {'anyOf': [False, S]}, {'anyOf': [False]}, {'anyOf': 'x'}, {'anyOf': [S] * 200},
    {'oneOf': [props(kind={'const': 'a'}, x=N), props(kind={'const': 'b'}, y=S)]},
    dict(props(a=S), anyOf=[{'required': ['a']}, {'required': ['b']}]),
    dict(props(a=S), oneOf=[props(b=N), props(c=N)]),
    dict(props(a=S), **{'not': {'required': ['a']}}), {'allOf': [props(a=S), props(b=N)]},
    {'allOf': [S, N]}, {'allOf': []}, {'allOf': [S]},
    {'allOf': [props(a=S), {'anyOf': [props(b=N), props(c=N)]}]}, {'allOf': [True, False]},
    {'allOf': [props(a=S), props(a=N)]},
    {'allOf': [{'$ref': '#/$defs/a'}], '$defs': {'a': props(x=N)}},
    {'if': S, 'then': {'minLength': 1}, 'else': N}, {'dependentRequired': {'a': ['b']}},
    {'$ref': '#/$defs/a', '$defs': {'a': S}},
    {'$ref': '#/definitions/a', 'definitions': {'a': props(x=S)}},
    dict(props(a={'$ref': '#/$defs/n'}), **{'$defs': {'n': props(next={'$ref': '#/$defs/n'})}}),
    dict(props(a={'$ref': '#'})), {'$ref': '#'}, {'anyOf': [{'$ref': '#'}, S]},
    {'allOf': [{'$ref': '#'}, props(a=S)]}, {'type': 'array', 'items': {'$ref': '#'}},
    {'type': 'object', 'additionalProperties': {'$ref': '#'}}, {'prefixItems': [{'$ref': '#'}]},
    {'anyOf': [S, {'type': 'array', 'items': {'$ref': '#'}},
     {'additionalProperties': {'$ref': '#'}}]},
    {'$ref': '#/$defs/a', '$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': '#/$defs/a'}}},
    {'$ref': '#/$defs/a', '$defs': {'a': {'anyOf': [{'$ref': '#/$defs/b'}, S]},
     'b': {'allOf': [{'$ref': '#/$defs/a'}, {'$ref': '#/$defs/c'}]},
     'c': {'oneOf': [{'$ref': '#/$defs/b'}, {'$ref': '#/$defs/a'}, N]}}},
    props(x={'$ref': '#/$defs/none'}), props(x={'$ref': 'https://evil.example/schema.json'}),
    props(x={'$ref': 'file:///etc/passwd'}), props(x={'$ref': '#anchor'}), props(x={'$ref': ''}),
    props(x={'$ref': 5}), props(x={'$ref': '#/'}), props(x={'$ref': '#//'}),
    props(x={'$ref': '/x'}), props(x={'$ref': '#/properties/y'}, y=S),
    props(x={'$ref': '#/properties/x'}),
    dict(props(x={'$ref': '#/$defs/a~1b~0c%25'}), **{'$defs': {'a/b~c%': N}}),
    dict(props(x={'$ref': '#/$defs/t/prefixItems/1'}),
     **{'$defs': {'t': {'prefixItems': [S, N]}}}),
    {'$id': 'https://x.example/s', 'type': 'object',
     'properties': {'a': {'$ref': 'https://x.example/s#/$defs/a'}}, '$defs': {'a': N}},
    props(x={'$dynamicRef': '#node'}), {'$recursiveRef': '#', 'type': 'object', 'properties': {}},
    props(a={'$ref': '#/$defs/x-y'}, b={'$ref': '#/$defs/x_y'}, c={'$ref': '#/$defs/XY'},
     d={'$ref': '#/$defs/x%20y'}) | {'$defs': {'x-y': S, 'x_y': N, 'XY': props(), 'x y': {}}},
    props(date={'type': 'string', 'format': 'date-time', 'description': 'When.',
     'default': '2026-01-01'}, n={'type': 'integer', 'minimum': 1, 'maximum': 10, 'default': 3,
     'deprecated': True}),
    props(a={'description': 5, 'default': {'x': ['*/', '\n']}, 'title': 'Title'}),
    dict(props(**{k: S for k in NASTY}), required=NASTY), {'enum': NASTY}, {'const': NASTY},
    props(**{f'p{i}': {'type': 'string', 'description': text} for i, text in enumerate(NASTY)}),
    props(**{f'p{i}': {'default': text, 'pattern': text} for i, text in enumerate(NASTY)}),
    dict(props(**{f'p{i}': {'$ref': f'#/$defs/{i}'} for i in range(len(NASTY))}),
     **{'$defs': {str(i): {'enum': [text]} for i, text in enumerate(NASTY)}}),
    props(**{text: props(**{text: props(**{text: N})}) for text in NASTY}),
    {'$schema': 'http://json-schema.org/draft-07/schema#', **props(a=S)},
]

HUGE = [
    nested(400, S, lambda s: props(a=s)), nested(400, S, lambda s: {'type': 'array', 'items': s}),
    nested(400, S, lambda s: {'anyOf': [s, N]}),
    nested(400, S, lambda s: {'allOf': [props(a=N), s]}),
    nested(300, S, lambda s: {'additionalProperties': s}),
    nested(300, S, lambda s: {'prefixItems': [s]}), nested(9, S, lambda s: props(a=s, b=s, c=s)),
    nested(15, S, lambda s: {'anyOf': [s, {'items': s}]}),
    props(**{f'property_number_{i}': {} for i in range(100000)}),
    dict(props(**{f'p{i}': True for i in range(60000)}), required=[f'p{i}' for i in range(60000)]),
    props(**{f'p{i}': {'$ref': f'#/$defs/d{i}'} for i in range(250)}) | {
        '$defs': {f'd{i}': props(a={'$ref': f'#/$defs/d{(i + 1) % 250}'}) for i in range(250)}},
    {'$ref': '#/$defs/d0', '$defs': {f'd{i}': {'$ref': f'#/$defs/d{i + 1}'} for i in range(2000)}},
    {'$ref': '#/$defs/d0', '$defs': {
        f'd{i}': {'anyOf': [{'$ref': f'#/$defs/d{k}'} for k in range(60)]} for i in range(60)}},
    props(**{f'p{i}': props(**{f'q{k}': {'type': 'string',
     'description': 'long ' * 300} for k in range(40)}) for i in range(40)}),
    {'enum': ['x' * 100000, 'y']}, {'enum': list(range(100000))}, {'prefixItems': [S] * 10000},
    {'oneOf': [props(kind={'const': i}) for i in range(5000)]},
    {'allOf': [props(**{f'a{i}': N}) for i in range(5000)]},
    dict({f'keyword{i}': i for i in range(50000)}, **props(a=S)),
    props(a={'description': 'x' * 1000000}), props(**{'k' * 100000: S, 'j': N}),
]


def chance(random_, depth=0):
    """A schema of any kind, mostly a sensible one."""
    def sub():
        return chance(random_, depth + 1)

    def name():
        return random_.choice(NASTY + ['a', 'b', 'id', 'user_id', 'camelCase'] * 4)

    kinds = ['string', 'integer', 'number', 'boolean', 'null', 'enum', 'const', 'ref', 'bool']
    if depth < 5:
        kinds += 2 * ['object', 'array', 'tuple', 'map', 'anyOf', 'oneOf', 'allOf', 'types',
                      'mixed']
    kind = random_.choice(kinds)
    if kind == 'enum':
        return {'enum': random_.sample(NASTY + [1, 2, None, True, 1.5], random_.randint(1, 6))}
    if kind == 'const':
        return {'const': random_.choice(NASTY + [0, -1, False])}
    if kind == 'ref':
        return {'$ref': random_.choice(['#', '#/$defs/a', '#/$defs/b', '#/$defs/c', '#/x',
                                        'http://x/y'])}
    if kind == 'bool':
        return random_.random() < 0.5
    if kind == 'object':
        names = {name() for _ in range(random_.randint(0, 5))}
        more = {} if random_.random() < 0.6 else {'additionalProperties': sub()}
        return {'type': 'object', 'properties': {n: sub() for n in sorted(names)},
                'required': [n for n in sorted(names) if random_.random() < 0.5], **more}
    if kind == 'array':
        return {'type': 'array', 'items': sub()}
    if kind == 'tuple':
        return {'type': 'array', 'prefixItems': [sub() for _ in range(random_.randint(0, 3))],
                'minItems': random_.randint(0, 3), 'items': random_.choice([True, False, sub()])}
    if kind == 'map':
        return {'type': 'object', 'additionalProperties': sub()}
    if kind in ('anyOf', 'oneOf', 'allOf'):
        return {kind: [sub() for _ in range(random_.randint(1, 3))], 'description': name()}
    if kind == 'types':
        return {'type': random_.sample(['string', 'null', 'object', 'array', 'integer'], 2),
                'items': sub()}
    if kind == 'mixed':
        return {'allOf': [sub()], 'anyOf': [sub()], 'description': name()}
    return {'type': kind, 'description': name(), 'nullable': random_.random() < 0.1}


def by_chance(n):
    random_ = random.Random(21)
    for _ in range(n):
        schema = chance(random_)
        if isinstance(schema, dict):
            schema['$defs'] = {key: chance(random_, 2) for key in 'abc'}
        yield schema
