//go:build unix

package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var clickSummary = chromedp.Click(chromedp.CSS("#over-details summary"))

func (p *page) clickRadio(id, value string) {
	p.t.Helper()
	p.used[id] = true
	p.run(chromedp.Click(chromedp.CSS(fmt.Sprintf(`[name=panes][value="%s"]`, value))))
}

// watchJumps collects the browser's layout shifts from now on: of everything
// that moves up or down, even after a click.
func (p *page) watchJumps() {
	p.t.Helper()
	p.do(`globalThis.jumped = []; globalThis.watch = new PerformanceObserver((list) => {
		for (const e of list.getEntries()) {
			for (const { node, currentRect: now, previousRect: was } of e.sources) {
				if (Math.abs(now.top - was.top) <= 0.5) continue;
				jumped.push((node?.id || node?.nodeName) + " from " + was.top + " to " + now.top);
			}
		}
	}); watch.observe({ type: "layout-shift" })`)
}

// jumpsAside does something that must move what is below.
func (p *page) jumpsAside(f func()) {
	p.t.Helper()
	p.do("globalThis.watch?.disconnect()")
	f()
	p.frames() // the shifts have been reported to nobody
	p.do(`globalThis.watch?.observe({ type: "layout-shift" })`)
}

// frames waits until the browser has drawn the page twice.
func (p *page) frames() {
	p.t.Helper()
	p.do("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
}

// Each control is reached by the Tab key, shows that it has the focus, and has a
// name.
func TestKeyboard(t *testing.T) {
	p := open(t, 900, 900, "light")
	want := eval[[]string](p, `[...document
		.querySelectorAll("button, input, select, textarea, summary, [tabindex]")].filter((e) => !e.disabled && (e.type !== "radio" || e.checked)).map((e) => e.id || e.name || e.tagName)`)
	var reached []string
	for range want {
		p.run(chromedp.KeyEvent(kb.Tab))
		focus := eval[struct {
			ID, Name, Outline string
		}](p, `(() => {
			const e = document.activeElement, style = getComputedStyle(e);
			return {
				ID: e.id || e.name || e.tagName,
				Name: e.ariaLabel || [...(e.labels || [])].map((l) => l.textContent).join() || e.textContent,
				Outline: style.outlineStyle + " " + style.outlineWidth,
			};
		})()`)
		reached = append(reached, focus.ID)
		if focus.Outline != "solid 3px" {
			t.Errorf("%s shows its focus by %q, want solid 3px", focus.ID, focus.Outline)
		}
		if focus.Name == "" {
			t.Errorf("%s has no name", focus.ID)
		}
	}
	if !slices.Equal(reached, want) {
		t.Errorf("reached by Tab: %q\nwant %q", reached, want)
	}
	if len(want) < 25 {
		t.Errorf("the page has %d controls", len(want))
	}
	p.press("item", "x"+kb.Enter)
	p.says("table-text", "was new")
	p.press("over-step", kb.Enter)
	p.says("over-text", "200 items")
	p.press("window-day", " ")
	p.says("window-text", "24 hours have passed")
}

// awkward are items without a place to break, of emoji, and from right to left.
var awkward = []string{
	"https://example.com/averyveryveryveryveryverylongpathwithoutaspace",
	strings.Repeat("👩🚀", 30), strings.Repeat("שלום", 16),
}

// cutOff lists what is wider than its place, or than the page. Fields scroll.
const cutOff = `(() => {
	const found = [];
	globalThis.widthsChecked = 0;
	for (const e of document.querySelectorAll("body, body *")) {
		if (e.closest(".unseen") || !e.checkVisibility()) continue;
		const right = e.getBoundingClientRect().right, page = document.documentElement.clientWidth;
		if (right > page + 0.5) found.push(e.tagName + " " + e.id + ": ends at " + right + " of " + page);
		if (e.closest("svg, input, textarea, #rate") || !e.textContent.trim()) continue;
		widthsChecked++;
		if (e.scrollWidth > e.clientWidth && getComputedStyle(e).display !== "inline")
			found.push(e.tagName + " " + (e.id || e.textContent.slice(0, 30))
				+ ": " + e.scrollWidth + " in " + e.clientWidth);
	}
	return found;
})()`

// On a narrow screen everything is in one column, and no text is wider than its
// place.
func TestNarrow(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		p := open(t, 320, 740, scheme)
		p.click("made")
		p.says("table-facts", "20 of 157")
		p.write("item", "a rather long item that somebody pasted, of more than forty characters")
		p.click("add")
		p.says("table-text", "a rather long item")
		p.click("over-run")
		p.says("over-text", "6,000 items")
		p.click("window-made")
		p.says("window-items", "“event-20”")
		for _, slider := range []string{"items-n", "one-in", "filters", "adds", "lookups"} {
			p.press(slider, kb.End)
		}
		p.write("price-commands", "10000")
		p.write("price-storage", "-1")
		p.says("plan-total", "$600,000,000.00")
		for i, item := range awkward {
			for _, part := range []string{"", "window-"} {
				p.do(fmt.Sprintf("document.getElementById(%q).value = %q", part+"item", item))
				p.click(part + "add")
			}
			p.says("table-text", item[:16])
			p.says("window-text", item[:16])
			if of := eval[[]string](p, `["table-text", "blocked-text", "window-text"].filter((id) =>
				!document.querySelector("#" + id + " bdi").textContent.startsWith("“"))`); len(of) > 0 {
				t.Errorf("%q: an item's direction reaches beyond it", of)
			}
			for _, width := range []int64{320, 360, 1012} {
				p.run(chromedp.EmulateViewport(width, 740))
				p.frames() // in which the chart is drawn again
				for _, what := range eval[[]string](p, cutOff) {
					t.Errorf("at %d pixels in %s: too wide: %s", width, scheme, what)
				}
				if n := eval[int](p, "widthsChecked"); n < 150 {
					t.Errorf("%d texts were looked at, want 150 or more", n)
				}
				p.shoot(fmt.Sprintf("narrow-%d-%s-%d", width, scheme, i))
			}
		}
	}
}

// Texts have a contrast of 4.5 to 1 to their background in both colour schemes,
// and drawings have 3 to 1.
func TestContrast(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		p := open(t, 1100, 900, scheme)
		p.click("made")
		p.click("false")
		p.says("table-text", "is to be expected")
		p.write("item", "alpha")
		p.click("ask")
		p.says("table-text", "No: ")
		p.click("over-run")
		p.says("over-text", "6,000 items")
		p.click("window-made")
		p.says("window-text", "20 items were added")
		p.shoot("wide-" + scheme + "-some")
		low := eval[[]string](p, lowContrast)
		for _, what := range low {
			t.Errorf("%s: too little contrast: %s", scheme, what)
		}
		if n := eval[int](p, "contrastChecked"); n < 150 {
			t.Errorf("%s: %d texts were looked at, want 150 or more", scheme, n)
		}
	}
}

// lowContrast lists texts and drawn colours by the formula of WCAG 2.
const lowContrast = `(() => {
	const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgba = (colour) => {
		probe.clearRect(0, 0, 1, 1);
		probe.fillStyle = colour;
		probe.fillRect(0, 0, 1, 1);
		return [...probe.getImageData(0, 0, 1, 1).data];
	};
	const light = (colour) => {
		const [r, g, b] = rgba(colour).slice(0, 3).map((v) => v / 255)
			.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (a, b) => {
		const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const colour = getComputedStyle(e).backgroundColor;
			if (rgba(colour)[3] === 255) return colour;
		}
		return "white";
	};
	const found = [];
	let checked = 0;
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || "value" in e;
		if (!own || !e.checkVisibility() || e.disabled || e.closest(".unseen, [type=range], [type=radio]")) continue;
		checked++;
		const style = getComputedStyle(e);
		const c = contrast(e.namespaceURI.endsWith("svg") ? style.fill : style.color, behind(e));
		if (c < 4.5) found.push(e.tagName + " " + (e.id || e.textContent.slice(0, 30)) + ": " + c.toFixed(2));
	}
	globalThis.contrastChecked = checked;
	const named = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
	const drawn = "set cell, mine cell, mine band, mine paper, blue paper, soft field";
	for (const [a, b] of drawn.split(", ").map((pair) => pair.split(" "))) {
		const c = contrast(named(a), named(b));
		if (c < 3) found.push(a + " on " + b + ": " + c.toFixed(2));
	}
	return found;
})()`
