// Package guest is a placeholder for now.
package guest
