// A plugin on the public Go SDK that uses all of it: check, apply, output, the three handle
// operations, a capability of its own, and a cancel that it waits for.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bluecadet/preflight/pkg/plugin/sdk"
)

type module struct{ calls int }

func (m *module) Name() string    { return "go_probe" }
func (m *module) Version() string { return "0.1.0" }

func text(args map[string]any, name string) string {
	value, _ := args[name].(string)
	return value
}

func (m *module) Check(ctx context.Context, args map[string]any, h sdk.Handle) (sdk.CheckResult, error) {
	m.calls++
	h.Output(fmt.Sprintf("check %d on %s, pid %d", m.calls, h.Info().Family, os.Getpid()))
	if script := text(args, "wait"); script != "" {
		_, err := h.RunCommand(ctx, script)
		return sdk.CheckResult{}, err
	}
	content, err := h.GetFile(ctx, text(args, "path"))
	needed := err != nil || string(content) != text(args, "content")
	return sdk.CheckResult{NeedsChange: needed, Message: "looked"}, nil
}

func (m *module) Apply(ctx context.Context, args map[string]any, h sdk.Handle) (sdk.ApplyResult, error) {
	if err := h.PutFile(ctx, text(args, "path"), []byte(text(args, "content"))); err != nil {
		return sdk.ApplyResult{}, err
	}
	result, err := h.RunCommand(ctx, "printf out; printf err >&2; exit 3")
	if err != nil {
		return sdk.ApplyResult{}, err
	}
	h.Output(fmt.Sprintf("ran %s %s %d", result.Stdout, result.Stderr, result.ExitCode))
	return sdk.ApplyResult{Message: "wrote"}, nil
}

func main() {
	sdk.Serve(&module{}, sdk.ServeOptions{Capabilities: []string{"example/own"}})
}
