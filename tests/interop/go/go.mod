module example.org/interop

go 1.22

require github.com/bluecadet/preflight v1.0.0
