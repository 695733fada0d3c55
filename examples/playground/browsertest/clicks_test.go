//go:build unix

package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// pixels counts the pixels of a canvas in one of the page's colours.
func (p *page) pixels(canvas, colour string) int {
	p.t.Helper()
	return eval[int](p, fmt.Sprintf(`(() => {
		const want = getComputedStyle(document.documentElement).getPropertyValue("--%s").trim();
		const probe = new OffscreenCanvas(1, 1).getContext("2d");
		probe.fillStyle = want;
		probe.fillRect(0, 0, 1, 1);
		const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
		const c = document.querySelector(%q);
		const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b;
		return n;
	})()`, colour, canvas))
}

// Every control does what its name says when it is clicked.
func TestClickThrough(t *testing.T) {
	p := open(t, 1100, 900, "light")
	p.table()
	p.overfill()
	p.plan()
	p.window()
	p.shoot("wide-light")
	all := eval[[]string](p, `[...document.querySelectorAll("button, input, select, textarea, summary, a")]
		.map((e) => e.id || e.name + e.value || e.parentNode.id)`)
	for _, id := range all {
		if !p.used[id] {
			t.Errorf("nothing used %q", id)
		}
	}
	if len(all) < 25 {
		t.Errorf("the page has %d controls, want 25 or more: %q", len(all), all)
	}
	if jumped := eval[[]string](p, "jumped"); len(jumped) > 0 {
		t.Errorf("the page jumped: %q", jumped)
	}
}

// empty uses buttons while the field is empty. The page says so in the place,
// and the field has the focus.
func (p *page) empty(field, place string, buttons ...string) {
	p.t.Helper()
	for _, button := range buttons {
		p.do(fmt.Sprintf("document.getElementById(%q).value = ''; document.getElementById(%q).textContent = ''",
			field, place))
		p.click(button)
		p.says(place, "There is no item: write one first.")
		if focus := eval[string](p, "document.activeElement.id"); focus != field {
			p.t.Errorf("%s: the focus is on %q, want %s", button, focus, field)
		}
	}
}

func (p *page) table() {
	t := p.t
	p.watchJumps()
	p.says("table-text", "The filter is empty")
	if n := p.pixels("#table-bits", "mine"); n != 0 {
		t.Errorf("an empty filter: %d pixels of an item are lit, want none", n)
	}
	p.click("false")
	p.says("table-text", "finds nothing")
	p.empty("item", "table-text", "add", "ask")
	p.write("item", "alpha")
	p.click("add")
	p.says("table-text", "“alpha” was new")
	for _, canvas := range []string{"#table-bits", "#blocked-bits", "#classic-bits"} {
		if p.pixels(canvas, "mine") == 0 {
			t.Errorf("%s: no bit of the item is lit, want its bits", canvas)
		}
	}
	if p.pixels("#table-bits", "band") == 0 {
		t.Error("no word is lit")
	}
	p.says("request", "BITFIELD", `"SET","u1"`)
	p.says("classic-text", "7 reads")
	p.says("blocked-text", "2 reads")
	p.write("item", "beta")
	p.click("ask")
	p.says("table-text", "No: “beta” was never added")
	p.says("request", `"GET","u53"`)
	p.write("item", "beta"+kb.Enter)
	p.says("table-text", "“beta” was new")
	p.write("item", "alpha")
	p.click("ask")
	p.says("table-text", "Yes: all 4 bits")
	p.write("paste", "one\ntwo\n\nalpha")
	p.click("paste-add")
	p.says("table-text", "3 items: 2 new, 1 in already")
	p.press("items", kb.Home)
	p.says("table-text", "“alpha” is in")
	for n := 24; n <= 164; n += 20 {
		p.click("made")
		p.says("table-facts", fmt.Sprintf("%d of 157", n))
	}
	p.click("false")
	p.says("table-text", "Yes, and that is wrong", "was never added", "is to be expected")
	if p.pixels("#table-bits", "set") == 0 {
		t.Error("no bit is drawn as set")
	}
	p.shoot("false-positive")
	p.press("rate", kb.ArrowUp)
	p.says("table-facts", "0 of 315")
	p.click("made")
	p.says("table-facts", "20 of 315")
	p.click("table-new")
	p.says("table-facts", "0 of 315")
	p.press("rate", kb.ArrowDown)
	p.says("table-facts", "0 of 157")
	p.click("made")
	p.says("table-facts", "20 of 157")
	p.write("item", "alpha")
	p.click("add")
	p.says("table-text", "“alpha”")
}

func (p *page) overfill() {
	dots := func() int { return eval[int](p, `document.querySelectorAll("#over-chart circle").length`) }
	p.says("over-text", "Both filters are empty")
	p.click("over-step")
	p.says("over-text", "200 items, 0.1 times")
	if n := dots(); n != 2 {
		p.t.Errorf("%d dots after a step, want 2", n)
	}
	p.click("over-run")
	p.says("over-text", "6,000 items, 3.0 times")
	if n := dots(); n != 60 {
		p.t.Errorf("%d dots at the end, want 60", n)
	}
	p.jumpsAside(func() {
		p.used["over-details"] = true // its summary
		p.run(clickSummary)
		p.wait(`document.getElementById("over-details").open`)
	})
	cells := eval[[]string](p, `[...document.querySelectorAll("#over-rows tr:nth-child(4) > *")]
		.map((e) => e.textContent)`)
	if len(cells) != 5 || cells[0] != "2.0" || slices.Contains(cells, "–") {
		p.t.Errorf("the row of twice the capacity: %q, want five values, the first 2.0", cells)
	}
	p.jumpsAside(func() { p.run(clickSummary) })
	p.shoot("overfilled")
	p.click("over-new")
	p.says("over-text", "Both filters are empty")
	// It stops if it is started again on the way.
	p.click("over-run")
	p.says("over-text", "times the capacity. Of")
	p.click("over-new")
	p.says("over-text", "Both filters are empty")
	p.click("over-run")
	p.says("over-text", "6,000 items")
}

func (p *page) plan() {
	t := p.t
	before := p.text("plan-total")
	if !strings.HasPrefix(before, "$") {
		t.Errorf("the total is %q, want dollars", before)
	}
	for id, want := range map[string]string{
		"items-n": "2,000,000", "one-in": "1 in 200", "filters": "2", "adds": "20,000", "lookups": "200,000",
	} {
		rows := p.text("plan-rows") + p.text("plan-bill")
		p.press(id, kb.ArrowRight)
		p.says(id+"-value", want)
		p.wait(fmt.Sprintf(`(document.getElementById("plan-rows").textContent
			+ document.getElementById("plan-bill").textContent) !== %q`, rows))
	}
	p.says("plan-bill", "6,600,000")
	p.says("plan-total", "$13.20")
	p.write("price-commands", "1")
	p.says("plan-total", "$66.00")
	for _, typed := range []string{"-1", "-", "10001"} {
		p.write("price-commands", typed)
		p.says("price-wrong", "A price is from 0 to 10,000. Anything else counts as 0.")
		p.says("plan-total", "$0.00")
		p.wait(`document.querySelector("[aria-invalid=true]") === document.getElementById("price-commands")`)
	}
	p.shoot("no-price")
	p.write("price-commands", "1")
	p.says("plan-total", "$66.00")
	p.wait(`!document.querySelector("[aria-invalid=true]") && !document.getElementById("price-wrong").textContent`)
	p.press("items-n", kb.End)
	p.says("plan-rows", "MiB")
	p.press("one-in", kb.End)
	p.says("plan-rows", "6", "20")
	p.press("filters", kb.End)
	p.says("plan-bill", "GiB")
	p.write("price-storage", "100")
	p.wait(`document.getElementById("plan-total").textContent !== "$66.00"`)
	p.press("adds", kb.Home)
	p.press("lookups", kb.Home)
	p.says("plan-text", " 0 commands in 30 days")
}

func (p *page) window() {
	t := p.t
	state := func(state string) string {
		return eval[string](p, fmt.Sprintf(`[...document.querySelectorAll("#panes .%s")]
			.map((e) => e.textContent).join()`, state))
	}
	chosen := func(want string) { // how long an epoch lasts with so many panes
		t.Helper()
		got := eval[string](p, `document.querySelector("[name=panes]:checked").parentNode.textContent.trim()`)
		if got != want {
			t.Errorf("chosen: %q, want %q", got, want)
		}
	}
	p.says("window-text", "The window is empty")
	p.empty("window-item", "window-text", "window-add", "window-ask", "window-copy")
	p.write("window-item", "first")
	p.click("window-add")
	p.says("window-text", "“first” is new")
	p.says("window-items", "just now", "yes")
	p.click("window-made")
	p.says("window-text", "20 items were added", "“event-1” to “event-20”")
	p.says("window-items", "“first”", "“event-1”", "“event-20”")
	p.write("window-item", "event-7")
	p.click("window-ask")
	p.says("window-text", "Yes: “event-7” was added just now")
	p.click("window-copy")
	p.says("window-text", "Yes, says the copy, of “event-7”")
	p.write("window-item", "event-8")
	p.click("window-copy")
	p.says("window-text", "Yes, says the copy, of “event-8”", "Sent: 0 requests")
	p.click("window-day")
	p.says("window-text", "24 hours have passed", "Nothing was sent")
	p.click("window-hours")
	p.says("window-text", "6 hours have passed")
	p.says("window-facts", "day 2, 06:00")
	if counts := state("counts"); !strings.Contains(counts, "counts") {
		t.Errorf("no pane counts: %q", counts)
	}
	p.write("window-item", "second"+kb.Enter)
	p.says("window-text", "“second” is new", "it turned the window")
	p.write("window-item", "first")
	p.click("window-ask")
	p.says("window-text", "Yes: “first” was added 30 hours ago")
	p.click("window-day")
	p.says("window-facts", "day 3, 06:00")
	p.click("window-ask")
	p.says("window-text", "No: “first”", "is forgotten")
	if old := state("old"); !strings.Contains(old, "no longer counts") {
		t.Errorf("no pane is old: %q", old)
	}
	p.shoot("window-old")
	p.click("window-made")
	p.says("window-text", "turned the window")
	if spare := state("spare"); !strings.Contains(spare, "0 bits") {
		t.Errorf("the spare pane is not clear: %q", spare)
	}
	p.jumpsAside(func() { // another number of panes takes another place
		p.clickRadio("panes2", "2")
		p.wait(`document.querySelectorAll("#panes figure").length === 4`)
		chosen("two, of 12 h and 3 s")
		p.clickRadio("panes1", "1")
		p.wait(`document.querySelectorAll("#panes figure").length === 3`)
		chosen("one, an epoch of 24 h and 5 s")
	})
	p.click("window-made")
	p.says("window-text", "20 items were added")
	p.click("window-new")
	p.says("window-text", "The window is empty")
	p.write("window-item", "first")
	p.click("window-add")
	p.says("window-text", "“first” is new")
}
