// A host on the public Go SDK: checks, applies and checks again with the plugin that it is given,
// on this machine, and prints what it saw as one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bluecadet/preflight/pkg/plugin/sdk"
)

type machine struct{}

func (machine) RunCommand(ctx context.Context, script string) (sdk.CommandResult, error) {
	command := exec.CommandContext(ctx, "sh", "-c", script)
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return sdk.CommandResult{
			Stdout: string(out), Stderr: string(exit.Stderr), ExitCode: exit.ExitCode(),
		}, nil
	}
	return sdk.CommandResult{Stdout: string(out)}, err
}

func (machine) PutFile(_ context.Context, path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func (machine) GetFile(_ context.Context, path string) ([]byte, error) {
	return os.ReadFile(path)
}

type seen struct {
	Name, Version string
	First, Second bool
	Output        []string
}

func run(plugin, path string) (seen, error) {
	ctx := context.Background()
	info := sdk.TargetInfo{Family: "linux", RuntimeKind: "posix-shell"}
	client, err := sdk.NewClientContext(ctx, plugin, info, machine{})
	if err != nil {
		return seen{}, err
	}
	defer func() { _ = client.Close() }()
	found := seen{Name: client.Name(), Version: client.Version()}
	output := func(line string) { found.Output = append(found.Output, line) }
	args := map[string]any{"path": path, "content": "from go\n"}
	first, err := client.Check(ctx, args, output)
	if err != nil {
		return found, err
	}
	if _, err = client.Apply(ctx, args, output); err != nil {
		return found, err
	}
	second, err := client.Check(ctx, args, output)
	found.First, found.Second = first.NeedsChange, second.NeedsChange
	return found, err
}

func main() {
	found, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(found)
}
