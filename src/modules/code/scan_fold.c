#include "modules/code/scan_fold.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "modules/code/clean.h"

static bool scan_fold_between(uint32_t c, uint32_t first, uint32_t last)
{
	return c >= first && c <= last;
}

/* From U+00C0 and U+0100: letters with marks. A dot is a sign. */
static const char latin[] = "aaaaaaaceeeeiiiidnooooo.ouuuuypsaaaaaaaceeeeiiiidnooooo.ouuuuypy"
			    "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
			    "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/* Letters of other scripts and styles that look like Latin ones: each run of characters and what
 * they are taken for. */
/* clang-format off */
static const struct {
	uint32_t first;
	const char *letters; /* a dot: none */
} alike[] = {
	{ 0x251, "a" }, { 0x261, "g" }, { 0x262, "g" }, { 0x26a, "i" }, { 0x274, "n" },
	{ 0x280, "r" }, { 0x28f, "y" }, { 0x299, "b" }, { 0x29c, "h" }, { 0x29f, "l" },
	{ 0x391, "ab..ezh.ik.mn.o.p..ty.x" }, { 0x3b1, "aby.ezn.ik.uv.o.p.otu.x.w" },
	{ 0x405, "s" }, { 0x406, "i" }, { 0x408, "j" }, { 0x410, "a.b..e....k.mho.pcty.x" },
	{ 0x430, "a.b..e....k.mho.pcty.x" }, { 0x455, "s" }, { 0x456, "i" }, { 0x458, "j" },
	{ 0x4ae, "yy" }, { 0x4ba, "hh" }, { 0x4cf, "l" }, { 0x501, "d" }, { 0x51b, "q" },
	{ 0x51d, "w" }, { 0x1d00, "a..bcd.e..jklm.o" }, { 0x1d18, "p" }, { 0x1d1b, "tu" },
	{ 0x1d20, "vwz" }, { 0xa730, "fs" },
};
/* clang-format on */

static char fold_style(uint32_t c)
{
	if (scan_fold_between(c, 0xff01, 0xff5e))
		return scan_fold(c - 0xfee0);
	if (scan_fold_between(c, 0x1d400, 0x1d6a3))
		return (char)('a' + (c - 0x1d400) % 26);
	if (scan_fold_between(c, 0x1d7ce, 0x1d7ff))
		return (char)('0' + (c - 0x1d7ce) % 10);
	if (scan_fold_between(c, 0x24b6, 0x24e9))
		return (char)('a' + (c - 0x24b6) % 26);
	if (scan_fold_between(c, 0x1f1e6, 0x1f1ff))
		return (char)('a' + (c - 0x1f1e6));
	if (scan_fold_between(c, 0x1f130, 0x1f149) || scan_fold_between(c, 0x1f150, 0x1f169) ||
	    scan_fold_between(c, 0x1f170, 0x1f189))
		return (char)('a' + (c - 0x1f130) % 32);
	return 0;
}

static char fold_alike(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(alike); i++) {
		const char *letters = alike[i].letters;
		size_t n = strlen(letters);

		if (scan_fold_between(c, alike[i].first, alike[i].first + (uint32_t)n - 1))
			return letters[c - alike[i].first];
	}
	return '.';
}

static bool is_sign(uint32_t c)
{
	return scan_fold_between(c, 0xa1, 0xbf) || scan_fold_between(c, 0x2010, 0x2bff) ||
	       scan_fold_between(c, 0x3000, 0x303f) || c == 0xd7 || c == 0xf7 || c >= 0x1f000;
}

char scan_fold(uint32_t c)
{
	char letter;

	if (scan_fold_between(c, 'A', 'Z'))
		return (char)(c + 32);
	if (scan_fold_between(c, 'a', 'z') || scan_fold_between(c, '0', '9'))
		return (char)c;
	if (scan_fold_between(c, 0x80, 0xbf) && c != 0xaa && c != 0xb5 && c != 0xba)
		return clean_hides(c) && c != 0x85 ? 0 : ' ';
	if (c < 0x80)
		return scan_fold_between(c, '\t', '\r') || c >= ' ' ? ' ' : 0;
	if (scan_fold_between(c, 0x300, 0x36f) || scan_fold_between(c, 0xfe00, 0xfe0f) ||
	    c == 0x200c || c == 0x200d || (clean_hides(c) && !scan_fold_between(c, 0x2028, 0x2029)))
		return 0;
	letter = fold_style(c);
	if (letter)
		return letter;
	letter = scan_fold_between(c, 0xc0, 0x17f) ? latin[c - 0xc0] : fold_alike(c);
	if (letter != '.')
		return letter;
	return is_sign(c) || scan_fold_between(c, 0x2000, 0x200a) ? ' ' : SCAN_FOLD_OTHER;
}
