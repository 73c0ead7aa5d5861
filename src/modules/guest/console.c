/* console.log() and its like: a frame each, as far as the run's limit of output goes. */
#include "modules/guest/internal.h"

static const char *const levels[] = { "log", "info", "warn", "error", "debug" };

/* The cost of a frame beside its text, so that empty lines come to an end, too. */
enum { LINE_COST = 16 };

static JSValue console_write(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv,
			     int level)
{
	struct guest *g = guest_of(ctx);
	autobuf struct buf line = BUF_INIT(CODE_FRAME_MAX / 8);
	struct buf frame;
	struct err e;

	for (int i = 0; i < argc; i++) {
		size_t n;
		const char *text = guest_text(ctx, argv[i], &n);
		int put = i == 0 ? 0 : buf_add(&line, " ", 1, &e);

		if (text && put == 0)
			put = buf_add(&line, text, n, &e);
		JS_FreeCString(ctx, text);
		if (g->hit != GUEST_NO_LIMIT || put < 0 || line.n > g->output_left)
			return guest_over(ctx, GUEST_OUTPUT);
	}
	if (line.n + LINE_COST > g->output_left)
		return guest_over(ctx, GUEST_OUTPUT);
	g->output_left -= line.n + LINE_COST;
	frame = guest_frame("console");
	guest_put(&frame, "level", str_of(levels[level]));
	guest_put(&frame, "text", buf_str(&line));
	guest_send(&frame);
	return JS_UNDEFINED;
}

int console_init(struct guest *g)
{
	JSContext *ctx = g->ctx;
	JSValue console = JS_NewObject(ctx), global = JS_GetGlobalObject(ctx);

	for (int i = 0; i < (int)ARRAY_LEN(levels); i++) {
		JS_DefinePropertyValueStr(ctx, console, levels[i],
					  JS_NewCFunctionMagic(ctx, console_write, levels[i], 0,
							       JS_CFUNC_generic_magic, i),
					  JS_PROP_C_W_E);
	}
	JS_DefinePropertyValueStr(ctx, global, "console", console,
				  JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
	JS_FreeValue(ctx, global);
	return JS_HasException(ctx) ? -1 : 0;
}
