package main

import (
	"crypto/tls"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/upbloom/upbloom/internal/testkit/testenv"
	"github.com/upbloom/upbloom/upstash/upstashtest"
)

// TestScratchImage runs the service in a root directory with only the files of
// the Dockerfile's last stage, as that stage's user. The database speaks TLS,
// and its certificate is the only root of the system.
func TestScratchImage(t *testing.T) {
	const roots = "/etc/ssl/certs/ca-certificates.crt"
	files := copied(t)
	db := upstashtest.NewServer(t, upstashtest.WithTLS())
	for _, tt := range []struct {
		name   string
		roots  bool
		status int
		log    string
	}{
		{"as in the Dockerfile", true, 200, ""},
		{"without the roots", false, 503, "certificate signed by unknown authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			build(t, root)
			if files["/server"] != "/server" || files[roots] == "" {
				t.Fatalf("the Dockerfile copies %v, want /server and %s", files, roots)
			}
			if tt.roots {
				writeRoots(t, filepath.Join(root, files[roots]), db)
			}
			c := start(t, "/server", db, inImage(t, root))
			status, _, err := c.get("/ready")
			if err != nil || status != tt.status {
				t.Errorf("GET /ready: %d, %v, want %d", status, err, tt.status)
			}
			if tt.log != "" {
				c.awaitLog(tt.log)
				return
			}
			c.want("a", 200, "new")
			c.want("a", 200, "duplicate")
		})
	}
}

// inImage returns the attributes to start a process with another root
// directory, as the image's user. Without root's rights that needs a user
// namespace. If the system allows none, the test is skipped.
func inImage(t *testing.T, root string) *syscall.SysProcAttr {
	t.Helper()
	const user = 65532
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	attr := &syscall.SysProcAttr{
		Chroot:      "/",
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getegid(), Size: 1}},
	}
	try := exec.Command("/proc/self/exe", "-test.run=^$")
	try.SysProcAttr = attr
	if err := try.Run(); err != nil {
		testenv.Missing(t, "root", "no root directory of its own for a process: "+err.Error())
	}
	attr.Chroot = root
	return attr
}

// copied returns the files that the last stage of the Dockerfile copies from
// the build stage, and their paths.
func copied(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "FROM scratch\n")
	if !ok {
		t.Fatal("the Dockerfile has no last stage FROM scratch")
	}
	files := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^COPY --from=build (\S+) (\S+)$`).FindAllStringSubmatch(last, -1) {
		files[m[1]] = m[2]
	}
	return files
}

// writeRoots writes db's certificate, which is self-signed, as the only root.
func writeRoots(t *testing.T, path string, db *upstashtest.Server) {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(db.URL, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	block := &pem.Block{Type: "CERTIFICATE", Bytes: conn.ConnectionState().PeerCertificates[0].Raw}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil {
		t.Fatal(err)
	}
}
