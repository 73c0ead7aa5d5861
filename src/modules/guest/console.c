/* What the console prints (js/inspect.js): a frame each, as far as the limit of output goes. */
#include "modules/guest/internal.h"

/* The cost of a frame beside its text, so that empty lines come to an end, too. */
enum { LINE_COST = 16 };

JSValue console_write(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	struct guest *g = guest_of(ctx);
	const char *level = JS_ToCString(ctx, argv[0]), *text;
	struct buf frame;
	size_t n = 0;

	text = level ? JS_ToCStringLen(ctx, &n, argv[1]) : NULL;
	if (text && g->hit == GUEST_NO_LIMIT && n + LINE_COST <= g->output_left) {
		g->output_left -= n + LINE_COST;
		frame = guest_frame("console");
		guest_put(&frame, "level", str_of(level));
		guest_put(&frame, "text", (struct str){ text, n });
		guest_send(&frame);
	} else if (text) {
		guest_over(ctx, GUEST_OUTPUT);
	}
	JS_FreeCString(ctx, level);
	JS_FreeCString(ctx, text);
	return JS_HasException(ctx) ? JS_EXCEPTION : JS_UNDEFINED;
}
