/*
 * A program of the build: compiles scripts for holt-js.
 *
 *	compile OUTPUT.c TYPESCRIPT|'' SCRIPT...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <quickjs/quickjs.h>

static _Noreturn void die(const char *what, const char *of)
{
	fprintf(stderr, "compile: %s: %s\n", of, what);
	exit(1);
}

static char *read_file(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long n;

	if (!f || fseek(f, 0, SEEK_END) < 0 || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) < 0)
		die("can't be read", path);
	text = calloc(1, (size_t)n + 1);
	if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
		die("can't be read", path);
	fclose(f);
	*ret_n = (size_t)n;
	return text;
}

static void write_script(FILE *to, JSContext *ctx, const char *name, const char *path)
{
	size_t n, size;
	char *text = read_file(path, &n);
	JSValue script = JS_Eval(ctx, text, n, strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
				 JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
	uint8_t *code;

	if (JS_IsException(script))
		die(JS_ToCString(ctx, JS_GetException(ctx)), path);
	code = JS_WriteObject(ctx, &size, script, JS_WRITE_OBJ_BYTECODE);
	if (!code)
		die("can't be written", path);
	fprintf(to, "static const uint8_t %s[] = {", name);
	for (size_t i = 0; i < size; i++)
		fprintf(to, "%s%u,", i % 32 ? "" : "\n", code[i]);
	fprintf(to, "\n};\n");
	js_free(ctx, code);
	JS_FreeValue(ctx, script);
	free(text);
}

int main(int argc, char **argv)
{
	JSRuntime *rt = JS_NewRuntime();
	JSContext *ctx = rt ? JS_NewContext(rt) : NULL;
	FILE *to = argc > 3 ? fopen(argv[1], "w") : NULL;
	char name[32];

	if (!ctx || !to)
		die("compile OUTPUT.c TYPESCRIPT|'' SCRIPT...", "usage");
	JS_SetStripInfo(rt, JS_STRIP_DEBUG);
	fprintf(to, "#include \"modules/guest/internal.h\"\n\n");
	if (*argv[2])
		write_script(to, ctx, "typescript", argv[2]);
	for (int i = 3; i < argc; i++) {
		snprintf(name, sizeof(name), "script_%d", i - 3);
		write_script(to, ctx, name, argv[i]);
	}
	fprintf(to, "const struct guest_script guest_typescript = { %s };\n",
		*argv[2] ? "typescript, sizeof(typescript)" : "0, 0");
	fprintf(to, "const struct guest_script guest_scripts[] = {\n");
	for (int i = 3; i < argc; i++)
		fprintf(to, "\t{ script_%d, sizeof(script_%d) },\n", i - 3, i - 3);
	fprintf(to, "\t{ 0, 0 },\n};\n");
	if (fclose(to) != 0)
		die("can't be written", argv[1]);
	JS_FreeContext(ctx);
	JS_FreeRuntime(rt);
	return 0;
}
