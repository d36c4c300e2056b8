package wire

// StepKind names a file operation.
type StepKind string

// The file operations. Steps of one request run in order and stop at the
// first that fails.
const (
	StepMkdir     StepKind = "mkdir"     // one directory; it must not exist
	StepMkdirAll  StepKind = "mkdirall"  // with parents
	StepRemove    StepKind = "remove"    // a file, a link or an empty directory
	StepRemoveAll StepKind = "removeall" // a tree
	StepSymlink   StepKind = "symlink"   // Path is the link, Data its target
	StepReadlink  StepKind = "readlink"
	StepWrite     StepKind = "write"    // Data in one write(2); creates and truncates
	StepRead      StepKind = "read"     // the whole file
	StepList      StepKind = "list"     // names in a directory, sorted
	StepGlob      StepKind = "glob"     // Path is a pattern: names and contents
	StepTransact  StepKind = "transact" // write Data, then read from the same open file
	StepInsmod    StepKind = "insmod"   // Path is a module, Data its parameters
	StepMount     StepKind = "mount"    // Path is the mount point, Data the file system type
)

// MaxRead bounds what StepRead, StepGlob and StepTransact return for one file,
// in bytes. OpFetch has no such bound.
const MaxRead = 256 << 10

// Step is one file operation.
type Step struct {
	Kind StepKind `json:"kind"`
	Path string   `json:"path"`
	Data []byte   `json:"data,omitempty"`
	Mode uint32   `json:"mode,omitempty"` // permission bits of what is created
}

// Reply is what a step returned.
type Reply struct {
	Data  []byte          `json:"data,omitempty"`
	Names []string        `json:"names,omitempty"`
	Files map[string]File `json:"files,omitempty"` // StepGlob, by path
}

// File is a match of StepGlob: the content of a regular file, the target of a
// symbolic link, or nothing for a directory or a file that cannot be read.
type File struct {
	Data []byte `json:"data,omitempty"`
	Link string `json:"link,omitempty"`
}
