"""What is wrong with a request: from a JSON Schema, values with one thing wrong in each;
and names that are none."""

LONG = 100000  # of more than these there are other bounds

KINDS = {'string': 'x', 'integer': 7, 'number': 7.5, 'boolean': True, 'array': [], 'object': {},
         'null': None}

# For one segment of a path, as it is sent: nothing has such an id.
SEGMENTS = ('..', '.', '%2e%2e', '%2E.', '%2f', 'a%2fb', '..%2f..%2fetc', '%5c', '%00', 'a%00b',
            'x' * 65, 'x' * 10240, '%c3%bc', '\xfc', '%ff', '%0d%0aX-A:%20b', '%20', '-x', '_',
            "a'b", '*', '%25', '%e2%80%ae', '%', '%zz')

# The same as a string of JSON.
IDS = ('', '..', '../x', '/', 'a\0b', 'x' * 65, 'x' * 10240, '\xfc', '\u202e', 'a b', '-x', "a'b",
       'a\r\nX-A: b', '%2e%2e', '\U0001f4a3')

# In place of a document.
NO_JSON = ('{', '{"a":1,}', "{'a':1}", '{"a":1} x', '{"a":NaN}', '{"a":01}', '{"a":1e999}',
           '\ufeff{}', '{"a":1,"a":2}', '{"b":{"a":1,"a":2}}', '[' * 60, '{"a":' * 60,
           b'{"a":"\xff"}', b'{"a":"\0"}', b'\x1f\x8b\x08\0', '//\n{}')


def kind_of(schema):
    kind = schema['type']
    return kind[0] if isinstance(kind, list) else kind  # a nullable one


def example(schema):
    """Something that the schema takes."""
    if 'default' in schema:
        return schema['default']
    if 'enum' in schema:
        return schema['enum'][0]
    if kind_of(schema) == 'object':
        return {name: example(schema['properties'][name]) for name in schema.get('required', [])}
    return {'string': 'x' * schema.get('minLength', 1), 'boolean': False,
            'integer': schema.get('minimum', 1),
            'array': [example(schema.get('items', {}))] * schema.get('minItems', 0)
            if schema.get('minItems') else [],
            'number': 1.0}[kind_of(schema)]


def of_other_types(schema):
    taken = {kind_of(schema), *(schema['type'] if isinstance(schema['type'], list) else ())}
    for kind, value in KINDS.items():
        if kind not in taken and not (kind == 'integer' and 'number' in taken):
            yield value


def values(schema):
    """Values in the schema's place that it does not allow, each with the name of the member that is
    wrong, if it is within."""
    kind = kind_of(schema)
    for value in of_other_types(schema):
        yield value, None
    if kind == 'integer':
        for value in (2**64, -2**63 - 1, 10**30):
            yield value, None
    if 'maximum' in schema:
        yield schema['maximum'] + 1, None
    if 'minimum' in schema:
        yield schema['minimum'] - 1, None
    if schema.get('maxLength', LONG) < LONG:
        yield 'x' * (schema['maxLength'] + 1), None
    if schema.get('minLength', 0) > 0:
        yield 'x' * (schema['minLength'] - 1), None
    if 'enum' in schema:
        yield 'no such', None
    if kind == 'array':
        yield from wrong_elements(schema)
    if kind == 'object':
        yield from wrong_members(schema)


def wrong_elements(schema):
    good = example(schema['items'])
    for value, name in values(schema['items']):
        yield [value], name
    if schema.get('maxItems', LONG) < LONG:
        yield [good] * (schema['maxItems'] + 1), None
    if schema.get('minItems', 0) > 1:
        yield [good] * (schema['minItems'] - 1), None


def wrong_members(schema):
    good = example(schema)
    others = schema.get('additionalProperties')
    if isinstance(others, dict):
        for value, _ in values(others):
            yield {**good, 'a_name': value}, 'a_name'
        if schema.get('maxProperties', LONG) < LONG:
            yield {f'n{i}': example(others) for i in range(schema['maxProperties'] + 1)}, None
    elif others is False:
        yield {**good, 'no_such_member': 1}, 'no_such_member'
    for name, member in schema.get('properties', {}).items():
        for value, within in values(member):
            yield {**good, name: value}, within or name
    for name in schema.get('required', []):
        yield {k: v for k, v in good.items() if k != name}, name


def texts(schema):
    """The same of a parameter of a query or a header, which is text: each as it is sent."""
    if 'enum' in schema:
        yield from ('nope', 'nope%00')
    elif kind_of(schema) == 'integer':
        yield from ('', 'x', '1.5', '01', '+1', '%201', '1e3', '0x1', '99999999999999999999',
                    '-99999999999999999999', '%00')
        yield from (str(schema[bound] + by) for bound, by in (('minimum', -1), ('maximum', 1))
                    if bound in schema)
    elif kind_of(schema) == 'boolean':
        yield from ('', 'yes', '1', 'TRUE', 'true%00')
    else:
        yield from ('%ff', 'a%00b')
        if schema.get('minLength', 0) > 0:
            yield ''
        if schema.get('maxLength', LONG) < 6000:  # a request line has 8 KiB
            yield 'x' * (schema['maxLength'] + 1)
