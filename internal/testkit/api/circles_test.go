//go:build api

package api

import (
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/upbloom/upbloom/internal/testkit/circles"
)

// most is how many files a circle may have. ARCHITECTURE.md has the reasons.
const most = 4

func TestNoLargeCircles(t *testing.T) {
	tested := 0
	for _, p := range packagesHere(t) {
		if p.ID != p.PkgPath || len(p.Syntax) < 2 { // a test, or one file
			continue
		}
		tested++
		for _, c := range circles.Find(uses(p)) {
			if len(c) > most {
				t.Errorf("%s: a circle of %d files, want at most %d: %s", p.ID, len(c), most, strings.Join(c, " "))
			}
		}
	}
	if tested < 10 {
		t.Errorf("%d packages of several files, want those of the module", tested)
	}
}

// uses returns which files each file of a package uses declarations of.
func uses(p *packages.Package) map[string][]string {
	uses := make(map[string][]string)
	file := func(at token.Pos) string { return filepath.Base(p.Fset.Position(at).Filename) }
	for id, o := range p.TypesInfo.Uses {
		// Fields and methods have no parent, and what is local has another.
		if o.Pkg() != p.Types || o.Parent() != nil && o.Parent() != p.Types.Scope() {
			continue
		}
		from, to := file(id.Pos()), file(o.Pos())
		if from != to && !slices.Contains(uses[from], to) {
			uses[from] = append(uses[from], to)
		}
	}
	return uses
}
