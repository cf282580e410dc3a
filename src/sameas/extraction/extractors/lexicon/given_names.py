"""Given names that are common in many countries: the first word of a name that is one makes it look like a person's.

Rule: names that are places, months or companies as often as people (`Florence`, `Jordan`, `Austin`, `Ford`) are left
out. A name that is not here only means that its shape tells nothing.
"""

# ruff: noqa: SIM905 (the list is the data here)

GIVEN_NAMES = frozenset(
    """
    Aaron Abdul Abdullah Abigail Abraham Achim Ada Adam Adriana Adèle Agnes Agnès Ahmad Ahmed Aisha Akira Alain Alan
    Albert Alberto Alejandra Alejandro Aleksandr Aleksandra Alessandra Alessandro Alex Alexander Alexandra Alexandre
    Alexei Alexey Alfonso Alfred Alfredo Ali Alice Alicia Alina Alison Allan Allen Amanda Amina Amir Amit Amy Amélie
    Ana Anand Anastasia Andrea Andreas Andrei Andrew Andrey Andrzej André Andrés Angela Angelika Anil Anita Anja Anke
    Ann Anna Anne Annegret Annette Annie Anthony Antoine Anton Antoni Antonia Antonio António Anya Ari Armin Arnaud
    Arne Arnold Arthur Arturo Arun Astrid Audrey August Augusto Aurélie Axel Ayesha Ayşe Barbara Barry Bart Bastian
    Beat Beata Beatrice Beatriz Ben Benedikt Benjamin Benoît Bernard Bernd Bernhard Bertrand Beth Betty Bianca Bill
    Birgit Björn Bob Boris Brandon Brenda Brian Brigitte Britta Bruce Bruno Camille Carl Carla Carlo Carlos Carmen
    Carol Carolina Caroline Carolyn Carsten Caterina Catherine Cathy Chantal Charles Charlie Chiara Chloé Chris
    Christa Christian Christiane Christina Christine Christof Christoph Christophe Christopher Claire Clara Clarence
    Claude Claudia Claudio Claus Clemens Colin Connor Conrad Constanze Corinna Cornelia Craig Cristian Cristina
    Cynthia Cécile Céline César Dagmar Dan Dana Daniel Daniela Daniele Danielle Dariusz Dave David Deborah Debra Denis
    Dennis Derek Detlef Diana Diane Diego Dieter Dietmar Dirk Dmitri Dmitry Dominik Dominique Don Donald Donna Doris
    Dorothea Dorothy Doug Douglas Duncan Dylan Ed Eduard Eduardo Edward Edwin Egon Eileen Ekaterina Eleanor Elena
    Eleonora Elias Elisa Elisabeth Elise Elizabeth Elke Ella Ellen Elsa Emil Emilia Emily Emma Emmanuel Enrico Enrique
    Eric Erica Erich Erik Erika Erin Ernest Ernesto Ernst Esther Ethan Eugen Eugene Eugenia Eva Eve Evelyn Ewa Fabian
    Fabio Fatima Federico Felix Ferdinand Fernando Filip Fiona Florian Frances Francesca Francesco Francis Francisco
    Franck Frank Franz Franziska François Françoise Fred Frederick Frederik Frida Friedrich Fritz Frédéric Félix
    Gabriel Gabriela Gabriele Gareth Gary Gavin Geoffrey Georg George Georges Gerald Gerard Gerd Gerhard Gertrud
    Giacomo Gianluca Gianni Gilbert Gilles Giorgio Giovanni Gisela Giulia Giuseppe Glenn Gloria Gordon Grace Graham
    Greg Gregor Gregory Greta Grzegorz Guido Guillaume Guillermo Gunnar Gustav Gustavo Guy Gérard Günter Günther Hana
    Hank Hanna Hannah Hannes Hans Harald Harold Harriet Harry Hartmut Hasan Hassan Heather Hector Hedwig Heide Heidi
    Heike Heiko Heiner Heinrich Heinz Helen Helena Helene Helga Helmut Henri Henrik Henry Herbert Hermann Hilary Hilde
    Hildegard Hiroshi Holger Horst Howard Hubert Hugh Hugo Hussein Héctor Hélène Ian Ibrahim Ida Ignacio Igor Ilse
    Imran Ines Inga Inge Ingeborg Ingo Ingrid Inés Irene Irina Iris Isaac Isabel Isabella Isabelle Ivan Ivo Iván Jack
    Jackie Jacob Jacqueline Jacques Jaime Jakob James Jan Jana Jane Janet Janice Janine Jason Javier Jean Jeanne Jeff
    Jeffrey Jennifer Jens Jeremy Jerry Jesse Jessica Jesús Jill Jim Jimmy Joachim Joan Joana Joanna Joanne Joe Joel
    Johan Johann Johanna Johannes John Johnny Jon Jonas Jonathan Josef Joseph Joshua José João Juan Juana Judith Julia
    Julian Juliane Julie Julien Juliette Julius Justin Jutta Jérôme Jörg Jürgen Kai Karen Karin Karl Karla Karolina
    Karsten Kate Katharina Katherine Kathleen Kathrin Kathy Katja Katrin Kazuo Keith Kelly Ken Kenji Kenneth Kerstin
    Kevin Khalid Kim Kirsten Klara Klaus Konrad Konstantin Kristian Kristin Kristina Krzysztof Kurt Kyle Lara Larry
    Lars Laura Lauren Laurence Laurent Lawrence Lea Leah Lee Leila Lena Leo Leon Leonard Leonardo Leonie Leonora
    Leopold Leslie Li Liam Lidia Lilian Lily Linda Lisa Liu Liz Lorenz Lorenzo Lothar Lou Louis Louise Luc Luca Lucas
    Lucia Lucie Lucy Lucía Ludwig Luigi Luis Luisa Luiz Lukas Luke Lutz Lydia Lynn Léa Léo Maarten Magda Magdalena
    Magnus Mahmoud Maja Manfred Manuel Manuela Marc Marcel Marcella Marcelo Marcin Marco Marcos Marcus Margaret
    Margarita Margit Margot Marguerite Maria Marian Marianne Marie Marilyn Marina Mario Marion Marisa Marjorie Mark
    Markus Marlene Marta Martha Martin Martina Martine Mary María Massimo Mateo Mathias Mathieu Mathilde Matt Matteo
    Matthew Matthias Matthieu Maurice Maurizio Max Maximilian Maya Małgorzata Mehmet Mei Melanie Melissa Mercedes Mia
    Michael Michaela Michał Michel Michele Michelle Michèle Miguel Mihai Mika Mike Mikhail Mila Milan Milena Ming
    Mireille Miriam Mohamed Mohammad Mohammed Mona Monica Monika Monique Moritz Muhammad Murray Mustafa Nadia Nadine
    Nancy Naomi Natalia Natalie Natasha Nathalie Nathan Neil Nelson Niamh Nicholas Nick Nico Nicola Nicolas Nicole
    Niels Nigel Nikolai Nikolaus Nils Nina Noah Nora Norbert Norman Olaf Ole Oleg Olga Oliver Olivia Olivier Omar
    Oscar Oskar Otto Pablo Pamela Paola Paolo Pascal Patricia Patrick Patrik Patrizia Paul Paula Pauline Paulo Pavel
    Pawel Pedro Peggy Penelope Per Pete Peter Petra Phil Philip Philipp Philippe Phillip Pia Pierre Pieter Pietro
    Piotr Priya Rachel Rafael Rainer Raj Rajesh Ralf Ralph Ramón Raphael Ravi Ray Raymond Raúl Rebecca Regina Reiner
    Reinhard Renate Renato René Renée Ricardo Riccardo Richard Rita Rob Robert Roberta Roberto Robin Rocío Rodrigo
    Roger Roland Rolf Romain Roman Ron Ronald Ronja Rosa Rosalind Rose Rosemarie Ross Roy Ruben Rudolf Rupert Russell
    Ruth Ryan Rüdiger Sabine Sabrina Sally Salvatore Sam Samantha Samir Samuel Sandra Sanjay Sara Sarah Sascha Saskia
    Sean Sebastian Serge Sergei Sergey Sergio Seth Shannon Sharon Shaun Sheila Shirley Sibylle Siegfried Sigrid Silke
    Silvia Simon Simona Simone Sofia Sofía Solveig Sonia Sonja Sophia Sophie Stefan Stefania Stefanie Stefano Steffen
    Stella Stephanie Stephen Steve Steven Stuart Stéphane Sue Sunil Susan Susana Susanna Susanne Suzanne Sven Svenja
    Svetlana Sylvia Sylvie Sébastien Takashi Tamara Tanja Tara Tatiana Ted Teresa Terry Thea Theo Theodor Theodore
    Theresa Thibault Thierry Thomas Thorsten Thérèse Tiago Tilo Tim Timo Timothy Tina Tobias Todd Tom Tomasz Tomás
    Tony Torsten Tracy Trevor Udo Ulf Uli Ulla Ulrich Ulrike Ursula Ute Uwe Valentina Valerie Valérie Vanessa Vera
    Verena Veronica Veronika Vicente Victor Vijay Viktor Viktoria Vincent Vincenzo Viola Virginie Vivian Vladimir
    Volker Víctor Walter Waltraud Wanda Wang Wendy Werner Wilfried Wilhelm Will Willem Willi William Willy Wolf
    Wolfgang Xavier Yannick Yasmin Yoko Yolanda Yuki Yuri Yusuf Yves Yvonne Zhang Zoe Zoë Étienne
    """.split()
)
