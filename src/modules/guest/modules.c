/*
 * import and require(). The hub is asked for each module at its first import, and answers with the
 * names of its functions or with a source. "host:holt" is here.
 */
#include <stdlib.h>

#include "modules/guest/internal.h"

#define HOLT_MODULE "host:holt"

struct guest_module {
	struct guest_module *next;
	char *name; /* owned */
	uint32_t index;
	JSValue functions; /* an object without a prototype; JS_UNDEFINED: it has a source */
	const char **names; /* of them; owned */
	uint32_t n;
	JSModuleDef *def; /* NULL: nothing has imported it yet */
	JSValue source;
	bool waits; /* its source awaits calls */
};

static struct guest_module *module_named(struct guest *g, const char *name)
{
	struct guest_module *m = g->modules;

	while (m && strcmp(m->name, name) != 0)
		m = m->next;
	return m;
}

bool source_waits(struct str code)
{
	static const char *const words[] = { "await", "async", "Promise", ".then" };
	bool waits = false;

	for (size_t i = 0; i < ARRAY_LEN(words) && !waits; i++)
		waits = memmem(code.p, code.n, words[i], strlen(words[i]));
	return waits;
}

bool modules_caller_waits(JSContext *ctx)
{
	struct guest *g = guest_of(ctx);
	JSAtom atom = JS_GetScriptOrModuleName(ctx, 1);
	const char *name = atom == JS_ATOM_NULL ? NULL : JS_AtomToCString(ctx, atom);
	const struct guest_module *m = name ? module_named(g, name) : NULL;

	JS_FreeCString(ctx, name);
	JS_FreeAtom(ctx, atom);
	return m ? m->waits : g->waits;
}

const char *modules_function(struct guest *g, uint32_t module, uint32_t function)
{
	const struct guest_module *m = g->modules;

	while (m && (m->index != module || !m->names))
		m = m->next;
	return m && function < m->n ? m->names[function] : "a call";
}

/* The modules that have functions: [{name, functions}]. */
JSValue modules_known(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	JSValue all = JS_NewArray(ctx);
	uint32_t n = 0;

	for (const struct guest_module *m = guest_of(ctx)->modules; m; m = m->next) {
		JSValue one = JS_NewObject(ctx), names = JS_NewArray(ctx);

		for (uint32_t i = 0; i < m->n; i++)
			JS_DefinePropertyValueUint32(ctx, names, i, JS_NewString(ctx, m->names[i]),
						     JS_PROP_C_W_E);
		JS_DefinePropertyValueStr(ctx, one, "name", JS_NewString(ctx, m->name),
					  JS_PROP_C_W_E);
		JS_DefinePropertyValueStr(ctx, one, "functions", names, JS_PROP_C_W_E);
		JS_DefinePropertyValueUint32(ctx, all, n++, one, JS_PROP_C_W_E);
	}
	return all;
}

static JSValue module_functions(JSContext *ctx, struct guest_module *m, JSValueConst names)
{
	JSValue all = JS_NewObjectProto(ctx, JS_NULL);
	JSValue length = guest_own(ctx, names, "length");
	int64_t n = 0;

	JS_ToInt64(ctx, &n, length);
	m->names = calloc((size_t)n + 1, sizeof(*m->names));
	if (!m->names)
		guest_exit(CODE_EXIT_MEMORY);
	for (int64_t i = 0; i < n; i++) {
		JSValue name = JS_GetPropertyUint32(ctx, names, (uint32_t)i);
		const char *text = JS_ToCString(ctx, name);

		if (text)
			JS_DefinePropertyValueStr(ctx, all, text,
						  call_function(ctx, m->index, (uint32_t)i, text),
						  JS_PROP_ENUMERABLE);
		m->names[m->n] = text ? strdup(text) : NULL;
		m->n += m->names[m->n] != NULL;
		JS_FreeCString(ctx, text);
		JS_FreeValue(ctx, name);
		if (JS_HasException(ctx)) {
			JS_FreeValue(ctx, all);
			return JS_EXCEPTION;
		}
	}
	JS_PreventExtensions(ctx, all);
	return all;
}

/* Asks the hub. */
static JSValue module_ask(struct guest *g, const char *name)
{
	struct buf frame = guest_frame("import");
	JSContext *ctx = g->ctx;
	JSValue answer, why;
	const char *text;

	guest_put(&frame, "name", str_of(name));
	guest_send(&frame);
	answer = call_read(g, "module");
	why = guest_own(ctx, answer, "error");
	if (JS_IsUndefined(why))
		return answer;
	JS_FreeValue(ctx, answer);
	text = JS_ToCString(ctx, why);
	JS_FreeValue(ctx, why);
	if (!text)
		return JS_EXCEPTION;
	JS_ThrowReferenceError(ctx, "%s", text);
	JS_FreeCString(ctx, text);
	return JS_EXCEPTION;
}

static JSValue module_holt(JSContext *ctx)
{
	JSValue all = JS_NewObjectProto(ctx, JS_NULL);

	JS_DefinePropertyValueStr(ctx, all, "parallel",
				  JS_NewCFunction(ctx, call_parallel, "parallel", 1),
				  JS_PROP_ENUMERABLE);
	JS_PreventExtensions(ctx, all);
	return all;
}

static struct guest_module *module_of(JSContext *ctx, const char *name)
{
	struct guest *g = guest_of(ctx);
	struct guest_module *m = module_named(g, name);
	JSValue answer = JS_UNDEFINED, names;
	bool own = strcmp(name, HOLT_MODULE) == 0;

	if (m)
		return m;
	if (strlen(name) > CODE_NAME_MAX) {
		JS_ThrowReferenceError(ctx, "no module has such a long name");
		return NULL;
	}
	if (!own)
		answer = module_ask(g, name);
	if (JS_IsException(answer))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (m)
		m->name = strdup(name);
	if (!m || !m->name)
		guest_exit(CODE_EXIT_MEMORY);
	m->index = (uint32_t)guest_own_int(ctx, answer, "module");
	m->source = guest_own(ctx, answer, "source");
	m->functions = JS_UNDEFINED;
	names = guest_own(ctx, answer, "functions");
	if (own)
		m->functions = module_holt(ctx);
	else if (!JS_IsString(m->source))
		m->functions = module_functions(ctx, m, names);
	JS_FreeValue(ctx, names);
	JS_FreeValue(ctx, answer);
	if (JS_IsException(m->functions))
		return NULL;
	m->next = g->modules;
	g->modules = m;
	return m;
}

/* ---- import -------------------------------------------------------------------------------- */

static char *normalize(JSContext *ctx, const char *base, const char *name, void *opaque)
{
	return js_strdup(ctx, name);
}

/* Calls f for each function. */
static int each_function(JSContext *ctx, struct guest_module *m, JSModuleDef *def,
			 int (*f)(JSContext *ctx, JSModuleDef *def, const char *name,
				  JSValueConst function))
{
	JSPropertyEnum *names;
	uint32_t n;
	int r = 0;

	if (JS_GetOwnPropertyNames(ctx, &names, &n, m->functions, JS_GPN_STRING_MASK) < 0)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		const char *name = JS_AtomToCString(ctx, names[i].atom);
		JSValue function = JS_GetProperty(ctx, m->functions, names[i].atom);

		if (!name || r < 0 || f(ctx, def, name, function) < 0)
			r = -1;
		JS_FreeValue(ctx, function);
		JS_FreeCString(ctx, name);
		JS_FreeAtom(ctx, names[i].atom);
	}
	js_free(ctx, names);
	return r;
}

static int add_export(JSContext *ctx, JSModuleDef *def, const char *name, JSValueConst function)
{
	return strcmp(name, "default") == 0 ? 0 : JS_AddModuleExport(ctx, def, name);
}

static int set_export(JSContext *ctx, JSModuleDef *def, const char *name, JSValueConst function)
{
	return strcmp(name, "default") == 0
		     ? 0
		     : JS_SetModuleExport(ctx, def, name, JS_DupValue(ctx, function));
}

static int module_init(JSContext *ctx, JSModuleDef *def)
{
	struct guest_module *m = guest_of(ctx)->modules;

	while (m && m->def != def)
		m = m->next;
	if (!m || each_function(ctx, m, def, set_export) < 0)
		return -1;
	return JS_SetModuleExport(ctx, def, "default", JS_DupValue(ctx, m->functions));
}

static JSModuleDef *module_compile(JSContext *ctx, struct guest_module *m)
{
	size_t n;
	JSModuleDef *def = NULL;
	JSValue source = source_module(ctx, m->name, m->source, &def);
	const char *text = JS_IsException(source) ? NULL : JS_ToCStringLen(ctx, &n, source);

	m->waits = text && source_waits((struct str){ text, n });
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, source);
	return def;
}

static JSModuleDef *load(JSContext *ctx, const char *name, void *opaque)
{
	struct guest_module *m = module_of(ctx, name);

	if (!m)
		return NULL;
	if (JS_IsString(m->source))
		return module_compile(ctx, m);
	m->def = JS_NewCModule(ctx, name, module_init);
	if (!m->def || JS_AddModuleExport(ctx, m->def, "default") < 0 ||
	    each_function(ctx, m, m->def, add_export) < 0)
		return NULL;
	return m->def;
}

/* ---- require ------------------------------------------------------------------------------- */

JSValue modules_require(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *name = JS_ToCString(ctx, argc > 0 ? argv[0] : JS_UNDEFINED);
	struct guest_module *m = name ? module_of(ctx, name) : NULL;
	JSValue loaded, space = JS_EXCEPTION;

	if (m && JS_IsString(m->source)) {
		loaded = JS_LoadModule(ctx, NULL, name);
		if (call_settle(guest_of(ctx), loaded)) {
			space = JS_PromiseResult(ctx, loaded);
			if (JS_PromiseState(ctx, loaded) == JS_PROMISE_REJECTED)
				space = JS_Throw(ctx, space);
		}
		JS_FreeValue(ctx, loaded);
	} else if (m) {
		space = JS_DupValue(ctx, m->functions);
	}
	JS_FreeCString(ctx, name);
	return space;
}

/* ---- a source that is only looked at ------------------------------------------------------- */

static int pretend_init(JSContext *ctx, JSModuleDef *def)
{
	return 0;
}

static JSModuleDef *pretend(JSContext *ctx, const char *name, void *opaque)
{
	return JS_NewCModule(ctx, name, pretend_init);
}

void modules_pretend(struct guest *g)
{
	JS_SetModuleLoaderFunc(g->rt, normalize, pretend, NULL);
}

int modules_init(struct guest *g)
{
	JSContext *ctx = g->ctx;
	JSValue global = JS_GetGlobalObject(ctx);

	JS_SetModuleLoaderFunc(g->rt, normalize, load, NULL);
	JS_DefinePropertyValueStr(ctx, global, "require",
				  JS_NewCFunction(ctx, modules_require, "require", 1),
				  JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
	JS_FreeValue(ctx, global);
	return JS_HasException(ctx) ? -1 : 0;
}
